import type { GotGraph, GotNode } from "@runwire/client";
import { useMemo, useState, type ReactNode } from "react";
import { useKeys } from "../../shell/keys";
import { useText } from "../../text";
import { classes, Duration, StatusDot } from "../../ui";
import { useFullHeight } from "../useFullHeight";
import { Canvas, focusThought, type NodeAttributes } from "./Canvas";
import { placeGraph } from "./graph";
import { GraphList } from "./GraphList";
import { GraphPanel } from "./GraphPanel";
import { curve } from "./place";
import { shapeOf } from "./states";
import style from "./Thoughts.module.css";

/** A drawing of more nodes helps nobody; the list has them all. */
const most = 400;

interface GraphViewProps {
  graph: GotGraph;
  startedAt: number;
  /** Whether it still grows. */
  isLive: boolean;
  isList: boolean;
  choices: ReactNode;
}

/** A graph of thoughts that grows, with the state of every node. */
export function GraphView({ graph, startedAt, isLive, isList, choices }: GraphViewProps) {
  const { t, format } = useText();
  const [selected, setSelected] = useState<string>();
  const placed = useMemo(() => placeGraph(graph, most), [graph]);
  const known = useMemo(() => new Map(graph.nodes.map((node) => [node.id, node])), [graph]);
  const inferred = useMemo(() => new Set(graph.edges.filter((edge) => edge.isInferred).map((edge) => `${edge.from} ${edge.to}`)), [graph]);
  const ids = useMemo(() => graph.nodes.slice(0, most).map((node) => node.id), [graph]);
  const panes = useFullHeight<HTMLDivElement>();
  const chosen = selected === undefined ? undefined : known.get(selected);
  const close = () => {
    setSelected(undefined);
    // Whoever walks with the keyboard goes on from the thought that was open.
    if (selected !== undefined) focusThought(selected);
  };
  useKeys({ Escape: close });
  const done = graph.nodes.filter((node) => node.status === "completed").length;
  const active = graph.nodes.findLast((node) => node.status === "running") ?? graph.nodes.findLast((node) => node.endedAt !== undefined);

  const lines = placed.edges.map(({ from, to, points }) => (
    <path
      key={`${from} ${to}`}
      d={curve(points)}
      className={classes(
        style["line"],
        inferred.has(`${from} ${to}`) && style["inferred"],
        known.get(from)?.status === "completed" && known.get(to)?.status !== "planned" && style["onPath"],
      )}
    />
  ));

  return (
    <>
      <div className={style["bar"]}>
        {choices}
        <span className={classes(style["note"], "figures")} role="status">
          {t.inspect.progress(format.number(done), format.number(Math.max(graph.nodeCount ?? 0, graph.nodes.length)))}
        </span>
        {!isList && <span className={style["hint"]}>{t.inspect.moveHint}</span>}
      </div>
      {!isList && inferred.size > 0 && <p className={style["note"]}>{t.inspect.inferred}</p>}
      {isList ? (
        <GraphList graph={graph} startedAt={startedAt} />
      ) : (
        <div ref={panes} className={classes(style["panes"], chosen && style["split"])}>
          <Canvas
            label={t.inspect.graphOf}
            role="list"
            placed={placed}
            ids={ids}
            lines={lines}
            selected={selected}
            onSelect={setSelected}
            active={active?.id}
            isLive={isLive}
            node={(id, attributes) => {
              const node = known.get(id);
              return node && <Node node={node} graph={graph} isSelected={id === selected} attributes={attributes} />;
            }}
          />
          {chosen && <GraphPanel node={chosen} graph={graph} startedAt={startedAt} onGo={setSelected} onClose={close} />}
        </div>
      )}
      {!isList && graph.nodes.length > most && <p className={style["note"]}>{t.inspect.onlyFirst(format.number(most))}</p>}
    </>
  );
}

interface NodeProps {
  node: GotNode;
  graph: GotGraph;
  isSelected: boolean;
  attributes: NodeAttributes;
}

function Node({ node, graph, isSelected, attributes }: NodeProps) {
  const { t, format } = useText();
  const added = graph.nodes.filter((other) => other.addedBy === node.id).length;
  const before = graph.edges.filter((edge) => edge.to === node.id).map((edge) => edge.from);
  const told = [
    t.inspect.got[node.status],
    added > 0 ? t.inspect.added(added) : "",
    before.length > 0 ? `${t.inspect.buildsOn} ${format.list(before)}` : "",
  ];
  return (
    <button
      {...attributes}
      type="button"
      aria-pressed={isSelected}
      className={classes(style["card"], style["node"], style[node.status], isSelected && style["selected"])}
    >
      <span className={style["nodeHead"]}>
        <StatusDot status={shapeOf[node.status]} />
        <span className={style["nodeName"]}>{node.id}</span>
        <span className="unseen">{told.filter((word) => word !== "").join(", ")}</span>
        {added > 0 && (
          <span className={style["added"]} aria-hidden="true">
            +{added}
          </span>
        )}
      </span>
      <span className={style["nodeWords"]}>{node.summary ?? node.error ?? t.inspect.got[node.status]}</span>
      {node.startedAt !== undefined && (
        <span className={style["nodeTime"]}>
          <Duration from={new Date(node.startedAt)} to={node.endedAt === undefined ? undefined : new Date(node.endedAt)} />
        </span>
      )}
    </button>
  );
}
