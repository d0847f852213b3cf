import { useText } from "../../text";
import { Badge, type Tone } from "../../ui";
import { maxDifferences, formatPath, type Difference } from "./diff";
import style from "./State.module.css";

const tones: Record<Difference["kind"], Tone> = { added: "good", removed: "bad", changed: "warn" };
const signs: Record<Difference["kind"], string> = { added: "+", removed: "−", changed: "~" };

/** Longer values are truncated; the tree below shows them completely. */
const maxValueLength = 1200;

/** Table of the differences between two states, with texts and signs, not colour alone. */
export function Differences({ differences }: { differences: readonly Difference[] }) {
  const { t, format } = useText();
  if (differences.length === 0) return <p className={style["same"]}>{t.inspect.noDifference}</p>;
  return (
    <>
      <div className={style["tableContainer"]} tabIndex={0} role="group" aria-label={t.inspect.differences}>
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
            {differences.map((difference) => {
              const path = formatPath(difference.path);
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
                  <td>{difference.kind !== "added" && <DiffValue value={difference.before} kind="old" />}</td>
                  <td>{difference.kind !== "removed" && <DiffValue value={difference.after} kind="new" />}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
      {differences.length >= maxDifferences && <p className={style["same"]}>{t.inspect.moreDifferences(format.number(maxDifferences))}</p>}
    </>
  );
}

function DiffValue({ value, kind }: { value: unknown; kind: "old" | "new" }) {
  const text = JSON.stringify(value, null, typeof value === "object" ? 1 : undefined) ?? "";
  const truncated = text.length > maxValueLength ? `${text.slice(0, maxValueLength)}…` : text;
  return kind === "old" ? <del className={style["old"]}>{truncated}</del> : <ins className={style["new"]}>{truncated}</ins>;
}
