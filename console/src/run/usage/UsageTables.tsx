import type { RunViewUsage } from "@runwire/client";
import { useState } from "react";
import { useText } from "../../text";
import { Button } from "../../ui";
import type { Aggregate } from "./spans";
import style from "./Usage.module.css";

interface AggregateTableProps {
  title: string;
  /** Title of the name column. */
  nameTitle: string;
  aggregates: readonly Aggregate[];
  /** Duration of the run in milliseconds. */
  runDuration: number;
}

/** Time and tokens by name, longest first. */
export function AggregateTable({ title, nameTitle, aggregates, runDuration }: AggregateTableProps) {
  const { t, format } = useText();
  const hasTokens = aggregates.some((aggregate) => aggregate.totalTokens > 0);
  const max = Math.max(1, ...aggregates.map((aggregate) => aggregate.duration));
  const tokens = (count: number) => (count === 0 ? "" : format.number(count));
  return (
    <div>
      <div className={style["head"]}>
        <h2>{title}</h2>
      </div>
      <div className={style["tableContainer"]} tabIndex={0} role="group" aria-label={title}>
        <table className={style["table"]}>
          <thead>
            <tr>
              <th scope="col">{nameTitle}</th>
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
            {aggregates.map((aggregate) => (
              <tr key={aggregate.name}>
                <th scope="row" className={style["nameCell"]}>
                  {aggregate.name === "" ? t.inspect.outside : aggregate.name}
                  <span className={style["durationBar"]} aria-hidden="true" style={{ width: `${(aggregate.duration / max) * 100}%` }} />
                </th>
                <td className={style["number"]}>{aggregate.count === 0 ? "" : format.number(aggregate.count)}</td>
                <td className={style["number"]}>{aggregate.failures === 0 ? "" : format.number(aggregate.failures)}</td>
                <td className={style["number"]}>{aggregate.count === 0 ? "" : format.duration(aggregate.duration)}</td>
                <td className={style["number"]}>{aggregate.count === 0 || runDuration <= 0 ? "" : format.percent(aggregate.duration / runDuration)}</td>
                <td className={style["number"]}>{aggregate.count === 0 ? "" : format.duration(aggregate.duration / aggregate.count)}</td>
                <td className={style["number"]}>{aggregate.count === 0 ? "" : format.duration(aggregate.longest)}</td>
                {hasTokens && (
                  <>
                    <td className={style["number"]}>{tokens(aggregate.promptTokens)}</td>
                    <td className={style["number"]}>{tokens(aggregate.completionTokens)}</td>
                    <td className={style["number"]}>{tokens(aggregate.totalTokens)}</td>
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

const pageSize = 100;

/** Tokens of each model call that reported them. */
export function CallTable({ usage, startedAt }: { usage: RunViewUsage; startedAt: number }) {
  const { t, format } = useText();
  const [visibleCount, setVisibleCount] = useState(pageSize);
  const remaining = usage.calls.length - visibleCount;
  const max = Math.max(1, ...usage.calls.slice(0, visibleCount).map((call) => call.totalTokens));
  const hasCache = usage.cachedTokens !== undefined;
  return (
    <div>
      <div className={style["head"]}>
        <h2>{t.inspect.byCallTitle}</h2>
      </div>
      <div className={style["tableContainer"]} tabIndex={0} role="group" aria-label={t.inspect.byCallTitle}>
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
            {usage.calls.slice(0, visibleCount).map((call, index) => (
              // Calls are only appended, so the index is a stable key.
              <tr key={index}>
                <th scope="row" className={style["nameCell"]}>
                  {call.step ?? call.tool ?? t.inspect.outside}
                </th>
                <td className={style["number"]}>{format.duration(call.at - startedAt)}</td>
                <td className={style["number"]}>{format.number(call.promptTokens)}</td>
                {hasCache && <td className={style["number"]}>{call.cachedTokens === undefined ? "" : format.number(call.cachedTokens)}</td>}
                <td className={style["number"]}>{format.number(call.completionTokens)}</td>
                <td className={style["number"]}>{format.number(call.totalTokens)}</td>
                <td aria-hidden="true" className={style["track"]}>
                  <span className={style["tokensIn"]} style={{ width: `${(call.promptTokens / max) * 100}%` }} />
                  <span className={style["tokensOut"]} style={{ left: `${(call.promptTokens / max) * 100}%`, width: `${(call.completionTokens / max) * 100}%` }} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {remaining > 0 && (
        <Button className={style["more"]} onClick={() => setVisibleCount(visibleCount + pageSize)}>
          {t.action.showMore(Math.min(remaining, pageSize))}
        </Button>
      )}
    </div>
  );
}
