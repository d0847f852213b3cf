import type { GotGraph } from "@runwire/client";
import { useState } from "react";
import { useText } from "../../text";
import { Button, Duration, StatusDot } from "../../ui";
import { dotStatusOf } from "./statusStyle";
import style from "./Thoughts.module.css";

const pageSize = 200;

/** The nodes of a graph as a table. */
export function GraphList({ graph, startedAt }: { graph: GotGraph; startedAt: number }) {
  const { t, format } = useText();
  const [visibleCount, setVisibleCount] = useState(pageSize);
  const remaining = graph.nodes.length - visibleCount;
  const dependencies = new Map<string, string[]>();
  for (const { from, to } of graph.edges) dependencies.set(to, [...(dependencies.get(to) ?? []), from]);
  return (
    <>
      <div className={style["tableContainer"]} tabIndex={0} role="group" aria-label={t.inspect.graphOfThoughts}>
        <table className={style["table"]}>
          <thead>
            <tr>
              <th scope="col">{t.inspect.node}</th>
              <th scope="col">{t.inspect.state}</th>
              <th scope="col">{t.inspect.result}</th>
              <th scope="col">{t.inspect.dependsOn}</th>
              <th scope="col" className={style["number"]}>
                {t.inspect.startedAfter}
              </th>
              <th scope="col" className={style["number"]}>
                {t.inspect.took}
              </th>
            </tr>
          </thead>
          <tbody>
            {graph.nodes.slice(0, visibleCount).map((node) => (
              <tr key={node.id}>
                <th scope="row" className={style["cell"]}>
                  {node.id}
                </th>
                <td>
                  <span className={style["nodeState"]}>
                    <StatusDot status={dotStatusOf[node.status]} /> {t.inspect.got[node.status]}
                  </span>
                </td>
                <td className={style["cell"]}>{node.summary ?? node.error}</td>
                <td className={style["cell"]}>{format.list(dependencies.get(node.id) ?? [])}</td>
                <td className={style["number"]}>{node.startedAt === undefined ? "" : format.duration(node.startedAt - startedAt)}</td>
                <td className={style["number"]}>
                  {node.startedAt !== undefined && <Duration from={new Date(node.startedAt)} to={node.endedAt === undefined ? undefined : new Date(node.endedAt)} />}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {remaining > 0 && <Button onClick={() => setVisibleCount(visibleCount + pageSize)}>{t.action.showMore(Math.min(remaining, pageSize))}</Button>}
    </>
  );
}
