import type { TotTree } from "@runwire/client";
import { useText } from "../../text";
import { Badge, Button, classNames } from "../../ui";
import { useState } from "react";
import { toneOf } from "./statusStyle";
import style from "./Thoughts.module.css";

const pageSize = 200;

/** The thoughts of a tree as a table in order of creation, and its backtracking steps. */
export function TreeList({ tree, startedAt }: { tree: TotTree; startedAt: number }) {
  const { t, format } = useText();
  const [visibleCount, setVisibleCount] = useState(pageSize);
  const textOf = (id: string) => tree.nodes.find((node) => node.id === id)?.text || t.inspect.start;
  const thoughts = tree.nodes.slice(1);
  const remaining = thoughts.length - visibleCount;
  return (
    <>
      <div className={style["tableContainer"]} tabIndex={0} role="group" aria-label={t.inspect.treeOfThoughts}>
        <table className={style["table"]}>
          <thead>
            <tr>
              <th scope="col" className={style["number"]}>
                {t.inspect.visit}
              </th>
              <th scope="col">{t.inspect.thought}</th>
              <th scope="col" className={style["number"]}>
                {t.inspect.score}
              </th>
              <th scope="col" className={style["number"]}>
                {t.inspect.depth}
              </th>
              <th scope="col">{t.inspect.state}</th>
              <th scope="col" className={style["number"]}>
                {t.inspect.createdAfter}
              </th>
            </tr>
          </thead>
          <tbody>
            {thoughts.slice(0, visibleCount).map((node) => (
              <tr key={node.id}>
                <td className={style["number"]}>{node.visit}</td>
                <th scope="row" className={classNames(style["cell"], node.status === "abandoned" && style["abandonedText"])} style={{ paddingLeft: 12 + Math.min(node.depth - 1, 12) * 16 }}>
                  {node.text}
                </th>
                <td className={style["number"]}>{node.score === undefined ? "" : format.number(node.score)}</td>
                <td className={style["number"]}>{node.depth}</td>
                <td>
                  <Badge tone={tree.path.includes(node.id) ? "good" : toneOf[node.status]}>{tree.path.includes(node.id) ? t.inspect.onPath : t.inspect.tot[node.status]}</Badge>
                </td>
                <td className={style["number"]}>{format.duration(node.at - startedAt)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {remaining > 0 && <Button onClick={() => setVisibleCount(visibleCount + pageSize)}>{t.action.showMore(Math.min(remaining, pageSize))}</Button>}
      {tree.backtracks.length > 0 && (
        <div>
          <h2>{t.inspect.backtracking}</h2>
          <ol className={style["backtracks"]}>
            {tree.backtracks.map((backtrack) => (
              <li key={`${backtrack.at} ${backtrack.from}`}>
                {t.inspect.backtrack(textOf(backtrack.from), textOf(backtrack.to))}
                {backtrack.reason !== undefined && <span className={style["secondary"]}> {backtrack.reason}</span>}
              </li>
            ))}
          </ol>
        </div>
      )}
    </>
  );
}
