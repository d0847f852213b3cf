import type { TotTree } from "@runwire/client";
import { useText } from "../../text";
import { Badge, Button, classes } from "../../ui";
import { useState } from "react";
import { toneOfThought } from "./states";
import style from "./Thoughts.module.css";

const page = 200;

/** The thoughts of a tree as a table, in the order they came up, with every time it went back. */
export function TreeList({ tree, startedAt }: { tree: TotTree; startedAt: number }) {
  const { t, format } = useText();
  const [shown, setShown] = useState(page);
  const textOf = (id: string) => tree.nodes.find((node) => node.id === id)?.text || t.inspect.start;
  const thoughts = tree.nodes.slice(1);
  const left = thoughts.length - shown;
  return (
    <>
      <div className={style["tableFrame"]} tabIndex={0} role="group" aria-label={t.inspect.treeOf}>
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
                {t.inspect.cameUp}
              </th>
            </tr>
          </thead>
          <tbody>
            {thoughts.slice(0, shown).map((node) => (
              <tr key={node.id}>
                <td className={style["number"]}>{node.visit}</td>
                <th scope="row" className={classes(style["cell"], node.status === "abandoned" && style["struck"])} style={{ paddingLeft: 12 + Math.min(node.depth - 1, 12) * 16 }}>
                  {node.text}
                </th>
                <td className={style["number"]}>{node.score === undefined ? "" : format.number(node.score)}</td>
                <td className={style["number"]}>{node.depth}</td>
                <td>
                  <Badge tone={tree.path.includes(node.id) ? "good" : toneOfThought[node.status]}>{tree.path.includes(node.id) ? t.inspect.onPath : t.inspect.tot[node.status]}</Badge>
                </td>
                <td className={style["number"]}>{format.duration(node.at - startedAt)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {left > 0 && <Button onClick={() => setShown(shown + page)}>{t.action.showMore(Math.min(left, page))}</Button>}
      {tree.backtracks.length > 0 && (
        <div>
          <h2>{t.inspect.wentBack}</h2>
          <ol className={style["backs"]}>
            {tree.backtracks.map((back) => (
              <li key={`${back.at} ${back.from}`}>
                {t.inspect.back(textOf(back.from), textOf(back.to))}
                {back.reason !== undefined && <span className={style["soft"]}> {back.reason}</span>}
              </li>
            ))}
          </ol>
        </div>
      )}
    </>
  );
}
