import type { TotNode, TotTree } from "@runwire/client";
import { useMemo, useState, type ReactNode } from "react";
import { useKeys } from "../../shell/useKeys";
import { useText } from "../../text";
import { classNames, Icon } from "../../ui";
import { useFullHeight } from "../useFullHeight";
import { Canvas, focusThought, type NodeAttributes } from "./Canvas";
import { curvePath } from "./layout";
import { layoutTree, backtrackEdges } from "./layoutTree";
import { TreeList } from "./TreeList";
import { TreePanel } from "./TreePanel";
import style from "./Thoughts.module.css";

/** Maximum number of nodes that are drawn; the list has all. */
const maxNodes = 400;

interface TreeViewProps {
  tree: TotTree;
  startedAt: number;
  /** Whether the run has not ended. */
  isLive: boolean;
  isList: boolean;
  viewSwitches: ReactNode;
}

/** Tree of thoughts with scores, the chosen path and backtracking. */
export function TreeView({ tree, startedAt, isLive, isList, viewSwitches }: TreeViewProps) {
  const { t, format } = useText();
  const [selected, setSelected] = useState<string>();
  const layout = useMemo(() => layoutTree(tree, maxNodes), [tree]);
  const backtracks = useMemo(() => backtrackEdges(tree), [tree]);
  const path = useMemo(() => new Set(tree.path), [tree]);
  const nodesById = useMemo(() => new Map(tree.nodes.map((node) => [node.id, node])), [tree]);
  const maxScore = useMemo(() => Math.max(1, ...tree.nodes.map((node) => node.score ?? 0)), [tree]);
  const panes = useFullHeight<HTMLDivElement>();
  const ids = useMemo(() => tree.nodes.slice(0, maxNodes).map((node) => node.id), [tree]);
  const selectedNode = selected === undefined ? undefined : nodesById.get(selected);
  const close = () => {
    setSelected(undefined);
    // Keyboard navigation continues from the node that was open.
    if (selected !== undefined) focusThought(selected);
  };
  useKeys({ Escape: close });

  const lines = (
    <>
      <defs>
        <marker id="back" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto-start-reverse">
          <path d="M1 1 7 4 1 7" className={style["arrow"]} />
        </marker>
      </defs>
      {layout.edges.map((edge) => (
        <path key={edge.to} d={curvePath(edge.points)} className={classNames(style["line"], path.has(edge.to) && path.has(edge.from) && style["onPath"])} />
      ))}
      {backtracks.map(({ from, to, isLast }) => {
        const edge = layout.edges.find((each) => each.to === from && each.from === to);
        return edge && <path key={`back ${from}`} d={curvePath(edge.points, 10)} className={style["backtrackEdge"]} markerStart={isLast ? "url(#back)" : undefined} />;
      })}
    </>
  );

  return (
    <>
      <div className={style["bar"]}>
        {viewSwitches}
        <span className={style["note"]}>{t.inspect.thoughtCount(tree.nodes.length - 1)}</span>
        {!isList && <span className={style["hint"]}>{t.inspect.moveHint}</span>}
      </div>
      {isList ? (
        <TreeList tree={tree} startedAt={startedAt} />
      ) : (
        <div ref={panes} className={classNames(style["panes"], selectedNode && style["split"])}>
          <Canvas
            label={t.inspect.treeOfThoughts}
            role="tree"
            layout={layout}
            ids={ids}
            lines={lines}
            selected={selected}
            onSelect={setSelected}
            active={tree.path.at(-1)}
            isLive={isLive}
            preferred={path}
            node={(id, attributes) => {
              const node = nodesById.get(id);
              return node && <ThoughtNode node={node} tree={nodesById} maxScore={maxScore} isOnPath={path.has(id)} isSelected={id === selected} attributes={attributes} />;
            }}
          />
          {selectedNode && <TreePanel node={selectedNode} tree={tree} startedAt={startedAt} isOnPath={path.has(selectedNode.id)} onClose={close} />}
        </div>
      )}
      {!isList && tree.nodes.length > maxNodes && <p className={style["note"]}>{t.inspect.onlyFirst(format.number(maxNodes))}</p>}
    </>
  );
}

interface ThoughtNodeProps {
  node: TotNode;
  tree: ReadonlyMap<string, TotNode>;
  maxScore: number;
  isOnPath: boolean;
  isSelected: boolean;
  attributes: NodeAttributes;
}

function ThoughtNode({ node, tree, maxScore, isOnPath, isSelected, attributes }: ThoughtNodeProps) {
  const { t, format } = useText();
  const siblings = node.parent === undefined ? [node.id] : (tree.get(node.parent)?.children ?? []);
  const isRoot = node.parent === undefined;
  const label = isRoot ? t.inspect.start : node.text;
  const score = node.score === undefined ? undefined : format.number(node.score);
  const descriptions = [isRoot ? "" : t.inspect.tot[node.status], score === undefined ? "" : t.inspect.scored(score), node.visit === undefined ? "" : t.inspect.visited(node.visit)];
  return (
    <div
      {...attributes}
      role="treeitem"
      aria-level={node.depth + 1}
      aria-setsize={siblings.length}
      aria-posinset={siblings.indexOf(node.id) + 1}
      aria-expanded={node.children.length > 0 ? true : undefined}
      aria-selected={isSelected}
      className={classNames(style["card"], style[node.status], isOnPath && style["path"], isRoot && style["root"], isSelected && style["selected"])}
    >
      <span className={style["label"]}>{label}</span>
      <span className="visually-hidden">{descriptions.filter((word) => word !== "").join(", ")}</span>
      {!isRoot && (
        <span className={style["foot"]} aria-hidden="true">
          {node.visit !== undefined && <span className={style["visit"]}>{node.visit}</span>}
          {node.status === "abandoned" && <Icon name="arrowLeft" size={12} />}
          {node.score !== undefined && (
            <>
              <span className={style["meter"]}>
                <span className={style["meterValue"]} style={{ width: `${Math.max(0, Math.min(1, node.score / maxScore)) * 100}%` }} />
              </span>
              <span className={classNames(style["score"], "tabular-nums")}>{score}</span>
            </>
          )}
        </span>
      )}
    </div>
  );
}
