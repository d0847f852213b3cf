import { useText } from "../../text";
import { Badge, type Tone } from "../../ui";
import { most, pathWords, type Difference } from "./diff";
import style from "./State.module.css";

const tones: Record<Difference["kind"], Tone> = { added: "good", removed: "bad", changed: "warn" };
const signs: Record<Difference["kind"], string> = { added: "+", removed: "−", changed: "~" };

/** A longer value is told by its beginning; the tree below has it whole. */
const longest = 1200;

/** Shows what differs between two states, path by path: in words and signs, not by colour alone. */
export function Differences({ found }: { found: readonly Difference[] }) {
  const { t, format } = useText();
  if (found.length === 0) return <p className={style["same"]}>{t.inspect.noDifference}</p>;
  return (
    <>
      <div className={style["tableFrame"]} tabIndex={0} role="group" aria-label={t.inspect.differences}>
        <table className={style["table"]}>
          <thead>
            <tr>
              <th scope="col">{t.inspect.kindTitle}</th>
              <th scope="col">{t.inspect.path}</th>
              <th scope="col">{t.inspect.before}</th>
              <th scope="col">{t.inspect.after}</th>
            </tr>
          </thead>
          <tbody>
            {found.map((difference) => {
              const path = pathWords(difference.path);
              return (
                <tr key={`${difference.kind} ${path}`}>
                  <td>
                    <Badge tone={tones[difference.kind]}>
                      <span aria-hidden="true">{signs[difference.kind]} </span>
                      {t.inspect.change[difference.kind]}
                    </Badge>
                  </td>
                  <th scope="row" className={style["path"]}>
                    {path === "" ? t.inspect.wholeState : path}
                  </th>
                  <td>{difference.kind !== "added" && <Value value={difference.before} kind="old" />}</td>
                  <td>{difference.kind !== "removed" && <Value value={difference.after} kind="new" />}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
      {found.length >= most && <p className={style["same"]}>{t.inspect.moreDifferences(format.number(most))}</p>}
    </>
  );
}

function Value({ value, kind }: { value: unknown; kind: "old" | "new" }) {
  const text = JSON.stringify(value, null, typeof value === "object" ? 1 : undefined) ?? "";
  const shown = text.length > longest ? `${text.slice(0, longest)}…` : text;
  return kind === "old" ? <del className={style["old"]}>{shown}</del> : <ins className={style["new"]}>{shown}</ins>;
}
