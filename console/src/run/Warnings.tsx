import type { Run } from "@runwire/client";
import { useText } from "../text";
import { Icon } from "../ui";
import style from "./Warnings.module.css";

type RunWarnings = NonNullable<Run["warnings"]>;

/** Expandable list of the rules of the dialect's document that the run's frames violate. */
export function Warnings({ warnings }: { warnings: RunWarnings | undefined }) {
  const { t, format } = useText();
  if (warnings === undefined || warnings.count === 0) return null;
  const listedCount = warnings.first.reduce((times, each) => times + each.times, 0);
  return (
    <details className={style["warnings"]}>
      <summary>
        <Icon name="warning" className={style["icon"]} />
        {t.run.warnings.summary(warnings.count, format.number(warnings.count), warnings.first[0]?.dialect)}
      </summary>
      <ul>
        {warnings.first.map((each) => (
          <li key={`${each.code} ${each.field ?? ""}`}>
            <p>
              {each.field !== undefined && <code>{each.field}</code>} {each.message}
              {each.hint !== undefined && <span className={style["hint"]}> {each.hint}</span>}
            </p>
            <p className={style["location"]}>
              {[t.run.warnings.at(each.seq, format.number(each.times), each.times), each.section, each.code]
                .filter((part) => part !== undefined)
                .join(" · ")}
            </p>
          </li>
        ))}
      </ul>
      {listedCount < warnings.count && <p className={style["location"]}>{t.run.warnings.more(format.number(warnings.count - listedCount))}</p>}
      <p className={style["location"]}>{t.run.warnings.advice}</p>
    </details>
  );
}
