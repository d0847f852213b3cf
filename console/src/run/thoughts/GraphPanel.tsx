import type { GotGraph, GotNode } from "@runwire/client";
import { useText } from "../../text";
import { Duration, IconButton, StatusDot } from "../../ui";
import { dotStatusOf } from "./statusStyle";
import style from "./Thoughts.module.css";

interface GraphPanelProps {
  node: GotNode;
  graph: GotGraph;
  startedAt: number;
  /** Selects another node. */
  onSelect(id: string): void;
  onClose(): void;
}

/** Details of a node with its neighbours. */
export function GraphPanel({ node, graph, startedAt, onSelect, onClose }: GraphPanelProps) {
  const { t, format } = useText();
  const dependencies = graph.edges.filter((edge) => edge.to === node.id).map((edge) => edge.from);
  const dependents = graph.edges.filter((edge) => edge.from === node.id).map((edge) => edge.to);
  const links = (ids: readonly string[]) =>
    ids.map((id) => (
      <button key={id} type="button" className={style["nodeLink"]} onClick={() => onSelect(id)}>
        {id}
      </button>
    ));
  return (
    <aside className={style["panel"]} aria-live="polite" aria-label={t.inspect.details}>
      <header className={style["panelHeader"]}>
        <h2 className={style["nodeTitle"]}>{node.id}</h2>
        <IconButton icon="cross" label={t.action.close} size="small" onClick={onClose} />
      </header>
      <p className={style["nodeState"]}>
        <StatusDot status={dotStatusOf[node.status]} /> {t.inspect.got[node.status]}
      </p>
      {node.summary !== undefined && <p className={style["fullText"]}>{node.summary}</p>}
      {node.error !== undefined && <p className={style["failure"]}>{node.error}</p>}
      <dl className={style["metadata"]}>
        {node.startedAt !== undefined && (
          <>
            <dt>{t.inspect.startedAfter}</dt>
            <dd className="tabular-nums">{format.duration(node.startedAt - startedAt)}</dd>
            <dt>{t.inspect.took}</dt>
            <dd>
              <Duration from={new Date(node.startedAt)} to={node.endedAt === undefined ? undefined : new Date(node.endedAt)} />
            </dd>
          </>
        )}
        {node.addedBy !== undefined && (
          <>
            <dt>{t.inspect.addedBy}</dt>
            <dd>{links([node.addedBy])}</dd>
          </>
        )}
        {dependencies.length > 0 && (
          <>
            <dt>{t.inspect.dependsOn}</dt>
            <dd className={style["links"]}>{links(dependencies)}</dd>
          </>
        )}
        {dependents.length > 0 && (
          <>
            <dt>{t.inspect.requiredBy}</dt>
            <dd className={style["links"]}>{links(dependents)}</dd>
          </>
        )}
      </dl>
    </aside>
  );
}
