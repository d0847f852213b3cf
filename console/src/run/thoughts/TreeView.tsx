import type { TotNode, TotTree } from "@runwire/client";
import { useMemo, useState, type ReactNode } from "react";
import { useKeys } from "../../shell/keys";
import { useText } from "../../text";
import { classes, Icon } from "../../ui";
import { useFullHeight } from "../useFullHeight";
import { Canvas, focusThought, type NodeAttributes } from "./Canvas";
import { curve } from "./place";
import { placeTree, waysBack } from "./tree";
import { TreeList } from "./TreeList";
import { TreePanel } from "./TreePanel";
import style from "./Thoughts.module.css";

/** A drawing of more nodes helps nobody; the list has them all. */
const most = 400;

interface TreeViewProps {
  tree: TotTree;
  startedAt: number;
  /** Whether it still grows. */
  isLive: boolean;
  isList: boolean;
  choices: ReactNode;
}

/** A tree of thoughts: scores, the chosen path, and where it went back. */
export function TreeView({ tree, startedAt, isLive, isList, choices }: TreeViewProps) {
  const { t, format } = useText();
  const [selected, setSelected] = useState<string>();
  const placed = useMemo(() => placeTree(tree, most), [tree]);
  const back = useMemo(() => waysBack(tree), [tree]);
  const path = useMemo(() => new Set(tree.path), [tree]);
  const known = useMemo(() => new Map(tree.nodes.map((node) => [node.id, node])), [tree]);
  const highest = useMemo(() => Math.max(1, ...tree.nodes.map((node) => node.score ?? 0)), [tree]);
  const panes = useFullHeight<HTMLDivElement>();
  const ids = useMemo(() => tree.nodes.slice(0, most).map((node) => node.id), [tree]);
  const chosen = selected === undefined ? undefined : known.get(selected);
  const close = () => {
    setSelected(undefined);
    // Whoever walks with the keyboard goes on from the thought that was open.
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
      {placed.edges.map((edge) => (
        <path key={edge.to} d={curve(edge.points)} className={classes(style["line"], path.has(edge.to) && path.has(edge.from) && style["onPath"])} />
      ))}
      {back.map(({ from, to, isLast }) => {
        const edge = placed.edges.find((each) => each.to === from && each.from === to);
        return edge && <path key={`back ${from}`} d={curve(edge.points, 10)} className={style["wayBack"]} markerStart={isLast ? "url(#back)" : undefined} />;
      })}
    </>
  );

  return (
    <>
      <div className={style["bar"]}>
        {choices}
        <span className={style["note"]}>{t.inspect.thoughtCount(tree.nodes.length - 1)}</span>
        {!isList && <span className={style["hint"]}>{t.inspect.moveHint}</span>}
      </div>
      {isList ? (
        <TreeList tree={tree} startedAt={startedAt} />
      ) : (
        <div ref={panes} className={classes(style["panes"], chosen && style["split"])}>
          <Canvas
            label={t.inspect.treeOf}
            role="tree"
            placed={placed}
            ids={ids}
            lines={lines}
            selected={selected}
            onSelect={setSelected}
            active={tree.path.at(-1)}
            isLive={isLive}
            preferred={path}
            node={(id, attributes) => {
              const node = known.get(id);
              return node && <Thought node={node} tree={known} highest={highest} isOnPath={path.has(id)} isSelected={id === selected} attributes={attributes} />;
            }}
          />
          {chosen && <TreePanel node={chosen} tree={tree} startedAt={startedAt} isOnPath={path.has(chosen.id)} onClose={close} />}
        </div>
      )}
      {!isList && tree.nodes.length > most && <p className={style["note"]}>{t.inspect.onlyFirst(format.number(most))}</p>}
    </>
  );
}

interface ThoughtProps {
  node: TotNode;
  tree: ReadonlyMap<string, TotNode>;
  highest: number;
  isOnPath: boolean;
  isSelected: boolean;
  attributes: NodeAttributes;
}

function Thought({ node, tree, highest, isOnPath, isSelected, attributes }: ThoughtProps) {
  const { t, format } = useText();
  const siblings = node.parent === undefined ? [node.id] : (tree.get(node.parent)?.children ?? []);
  const isRoot = node.parent === undefined;
  const words = isRoot ? t.inspect.start : node.text;
  const score = node.score === undefined ? undefined : format.number(node.score);
  const told = [isRoot ? "" : t.inspect.tot[node.status], score === undefined ? "" : t.inspect.scored(score), node.visit === undefined ? "" : t.inspect.visited(node.visit)];
  return (
    <div
      {...attributes}
      role="treeitem"
      aria-level={node.depth + 1}
      aria-setsize={siblings.length}
      aria-posinset={siblings.indexOf(node.id) + 1}
      aria-expanded={node.children.length > 0 ? true : undefined}
      aria-selected={isSelected}
      className={classes(style["card"], style[node.status], isOnPath && style["path"], isRoot && style["root"], isSelected && style["selected"])}
    >
      <span className={style["words"]}>{words}</span>
      <span className="unseen">{told.filter((word) => word !== "").join(", ")}</span>
      {!isRoot && (
        <span className={style["foot"]} aria-hidden="true">
          {node.visit !== undefined && <span className={style["visit"]}>{node.visit}</span>}
          {node.status === "abandoned" && <Icon name="arrowLeft" size={12} />}
          {node.score !== undefined && (
            <>
              <span className={style["meter"]}>
                <span className={style["level"]} style={{ width: `${Math.max(0, Math.min(1, node.score / highest)) * 100}%` }} />
              </span>
              <span className={classes(style["score"], "figures")}>{score}</span>
            </>
          )}
        </span>
      )}
    </div>
  );
}
