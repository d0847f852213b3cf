import type { GotGraph, GotNode } from "@runwire/client";
import { useMemo, useState, type ReactNode } from "react";
import { useKeys } from "../../shell/useKeys";
import { useText } from "../../text";
import { classNames, Duration, StatusDot } from "../../ui";
import { useFullHeight } from "../useFullHeight";
import { Canvas, focusThought, type NodeAttributes } from "./Canvas";
import { layoutGraph } from "./layoutGraph";
import { GraphList } from "./GraphList";
import { GraphPanel } from "./GraphPanel";
import { curvePath } from "./layout";
import { dotStatusOf } from "./statusStyle";
import style from "./Thoughts.module.css";

/** Maximum number of nodes that are drawn; the list has all. */
const maxNodes = 400;

interface GraphViewProps {
  graph: GotGraph;
  startedAt: number;
  /** Whether the run has not ended. */
  isLive: boolean;
  isList: boolean;
  viewSwitches: ReactNode;
}

/** Graph of thoughts with the status of its nodes. */
export function GraphView({ graph, startedAt, isLive, isList, viewSwitches }: GraphViewProps) {
  const { t, format } = useText();
  const [selected, setSelected] = useState<string>();
  const layout = useMemo(() => layoutGraph(graph, maxNodes), [graph]);
  const nodesById = useMemo(() => new Map(graph.nodes.map((node) => [node.id, node])), [graph]);
  const inferred = useMemo(() => new Set(graph.edges.filter((edge) => edge.isInferred).map((edge) => `${edge.from} ${edge.to}`)), [graph]);
  const ids = useMemo(() => graph.nodes.slice(0, maxNodes).map((node) => node.id), [graph]);
  const panes = useFullHeight<HTMLDivElement>();
  const selectedNode = selected === undefined ? undefined : nodesById.get(selected);
  const close = () => {
    setSelected(undefined);
    // Keyboard navigation continues from the node that was open.
    if (selected !== undefined) focusThought(selected);
  };
  useKeys({ Escape: close });
  const done = graph.nodes.filter((node) => node.status === "completed").length;
  const active = graph.nodes.findLast((node) => node.status === "running") ?? graph.nodes.findLast((node) => node.endedAt !== undefined);

  const lines = layout.edges.map(({ from, to, points }) => (
    <path
      key={`${from} ${to}`}
      d={curvePath(points)}
      className={classNames(
        style["line"],
        inferred.has(`${from} ${to}`) && style["inferred"],
        nodesById.get(from)?.status === "completed" && nodesById.get(to)?.status !== "planned" && style["onPath"],
      )}
    />
  ));

  return (
    <>
      <div className={style["bar"]}>
        {viewSwitches}
        <span className={classNames(style["note"], "tabular-nums")} role="status">
          {t.inspect.progress(format.number(done), format.number(Math.max(graph.nodeCount ?? 0, graph.nodes.length)))}
        </span>
        {!isList && <span className={style["hint"]}>{t.inspect.moveHint}</span>}
      </div>
      {!isList && inferred.size > 0 && <p className={style["note"]}>{t.inspect.inferred}</p>}
      {isList ? (
        <GraphList graph={graph} startedAt={startedAt} />
      ) : (
        <div ref={panes} className={classNames(style["panes"], selectedNode && style["split"])}>
          <Canvas
            label={t.inspect.graphOfThoughts}
            role="list"
            layout={layout}
            ids={ids}
            lines={lines}
            selected={selected}
            onSelect={setSelected}
            active={active?.id}
            isLive={isLive}
            node={(id, attributes) => {
              const node = nodesById.get(id);
              return node && <GraphNode node={node} graph={graph} isSelected={id === selected} attributes={attributes} />;
            }}
          />
          {selectedNode && <GraphPanel node={selectedNode} graph={graph} startedAt={startedAt} onSelect={setSelected} onClose={close} />}
        </div>
      )}
      {!isList && graph.nodes.length > maxNodes && <p className={style["note"]}>{t.inspect.onlyFirst(format.number(maxNodes))}</p>}
    </>
  );
}

interface GraphNodeProps {
  node: GotNode;
  graph: GotGraph;
  isSelected: boolean;
  attributes: NodeAttributes;
}

function GraphNode({ node, graph, isSelected, attributes }: GraphNodeProps) {
  const { t, format } = useText();
  const added = graph.nodes.filter((other) => other.addedBy === node.id).length;
  const before = graph.edges.filter((edge) => edge.to === node.id).map((edge) => edge.from);
  const descriptions = [
    t.inspect.got[node.status],
    added > 0 ? t.inspect.added(added) : "",
    before.length > 0 ? `${t.inspect.dependsOn} ${format.list(before)}` : "",
  ];
  return (
    <button
      {...attributes}
      type="button"
      aria-pressed={isSelected}
      className={classNames(style["card"], style["node"], style[node.status], isSelected && style["selected"])}
    >
      <span className={style["nodeHeader"]}>
        <StatusDot status={dotStatusOf[node.status]} />
        <span className={style["nodeName"]}>{node.id}</span>
        <span className="visually-hidden">{descriptions.filter((word) => word !== "").join(", ")}</span>
        {added > 0 && (
          <span className={style["added"]} aria-hidden="true">
            +{added}
          </span>
        )}
      </span>
      <span className={style["nodeText"]}>{node.summary ?? node.error ?? t.inspect.got[node.status]}</span>
      {node.startedAt !== undefined && (
        <span className={style["nodeTime"]}>
          <Duration from={new Date(node.startedAt)} to={node.endedAt === undefined ? undefined : new Date(node.endedAt)} />
        </span>
      )}
    </button>
  );
}
