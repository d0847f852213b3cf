import type { RunViewUsage } from "@runwire/client";
import { useState } from "react";
import { useText } from "../../text";
import { Button } from "../../ui";
import type { Sum } from "./spans";
import style from "./Usage.module.css";

interface SumTableProps {
  title: string;
  /** What the names are of. */
  what: string;
  sums: readonly Sum[];
  /** How long the run took, in milliseconds. */
  whole: number;
}

/** Time and tokens by name, the longest first. */
export function SumTable({ title, what, sums, whole }: SumTableProps) {
  const { t, format } = useText();
  const hasTokens = sums.some((sum) => sum.totalTokens > 0);
  const most = Math.max(1, ...sums.map((sum) => sum.duration));
  const tokens = (count: number) => (count === 0 ? "" : format.number(count));
  return (
    <div>
      <div className={style["head"]}>
        <h2>{title}</h2>
      </div>
      <div className={style["tableFrame"]} tabIndex={0} role="group" aria-label={title}>
        <table className={style["table"]}>
          <thead>
            <tr>
              <th scope="col">{what}</th>
              {[t.inspect.calls, t.inspect.failures, t.inspect.duration, t.inspect.share, t.inspect.mean, t.inspect.longest].map((name) => (
                <th key={name} scope="col" className={style["number"]}>
                  {name}
                </th>
              ))}
              {hasTokens &&
                [t.inspect.input, t.inspect.output, t.inspect.total].map((name) => (
                  <th key={name} scope="col" className={style["number"]}>
                    {name}
                  </th>
                ))}
            </tr>
          </thead>
          <tbody>
            {sums.map((sum) => (
              <tr key={sum.name}>
                <th scope="row" className={style["what"]}>
                  {sum.name === "" ? t.inspect.outside : sum.name}
                  <span className={style["under"]} aria-hidden="true" style={{ width: `${(sum.duration / most) * 100}%` }} />
                </th>
                <td className={style["number"]}>{sum.times === 0 ? "" : format.number(sum.times)}</td>
                <td className={style["number"]}>{sum.failures === 0 ? "" : format.number(sum.failures)}</td>
                <td className={style["number"]}>{sum.times === 0 ? "" : format.duration(sum.duration)}</td>
                <td className={style["number"]}>{sum.times === 0 || whole <= 0 ? "" : format.percent(sum.duration / whole)}</td>
                <td className={style["number"]}>{sum.times === 0 ? "" : format.duration(sum.duration / sum.times)}</td>
                <td className={style["number"]}>{sum.times === 0 ? "" : format.duration(sum.longest)}</td>
                {hasTokens && (
                  <>
                    <td className={style["number"]}>{tokens(sum.promptTokens)}</td>
                    <td className={style["number"]}>{tokens(sum.completionTokens)}</td>
                    <td className={style["number"]}>{tokens(sum.totalTokens)}</td>
                  </>
                )}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </div>
  );
}

const page = 100;

/** The tokens of each model call that told them. */
export function CallTable({ usage, startedAt }: { usage: RunViewUsage; startedAt: number }) {
  const { t, format } = useText();
  const [shown, setShown] = useState(page);
  const left = usage.calls.length - shown;
  const most = Math.max(1, ...usage.calls.slice(0, shown).map((call) => call.totalTokens));
  const hasCache = usage.cachedTokens !== undefined;
  return (
    <div>
      <div className={style["head"]}>
        <h2>{t.inspect.byCallTitle}</h2>
      </div>
      <div className={style["tableFrame"]} tabIndex={0} role="group" aria-label={t.inspect.byCallTitle}>
        <table className={style["table"]}>
          <thead>
            <tr>
              <th scope="col">{t.inspect.step}</th>
              {[t.inspect.at, t.inspect.input, ...(hasCache ? [t.inspect.cached] : []), t.inspect.output, t.inspect.total].map((name) => (
                <th key={name} scope="col" className={style["number"]}>
                  {name}
                </th>
              ))}
              <td aria-hidden="true" className={style["scale"]} />
            </tr>
          </thead>
          <tbody>
            {usage.calls.slice(0, shown).map((call, place) => (
              // Calls only ever come after one another.
              <tr key={place}>
                <th scope="row" className={style["what"]}>
                  {call.step ?? call.tool ?? t.inspect.outside}
                </th>
                <td className={style["number"]}>{format.duration(call.at - startedAt)}</td>
                <td className={style["number"]}>{format.number(call.promptTokens)}</td>
                {hasCache && <td className={style["number"]}>{call.cachedTokens === undefined ? "" : format.number(call.cachedTokens)}</td>}
                <td className={style["number"]}>{format.number(call.completionTokens)}</td>
                <td className={style["number"]}>{format.number(call.totalTokens)}</td>
                <td aria-hidden="true" className={style["track"]}>
                  <span className={style["tokensIn"]} style={{ width: `${(call.promptTokens / most) * 100}%` }} />
                  <span className={style["tokensOut"]} style={{ left: `${(call.promptTokens / most) * 100}%`, width: `${(call.completionTokens / most) * 100}%` }} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {left > 0 && (
        <Button className={style["more"]} onClick={() => setShown(shown + page)}>
          {t.action.showMore(Math.min(left, page))}
        </Button>
      )}
    </div>
  );
}
