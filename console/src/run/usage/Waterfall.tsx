import type { RunViewSnapshot } from "@runwire/client";
import { useMemo, useState } from "react";
import { useText } from "../../text";
import { Button, classNames, Icon } from "../../ui";
import { axisOf, spansOf, type Span } from "./spans";
import style from "./Usage.module.css";

const pageSize = 150;

interface WaterfallProps {
  view: RunViewSnapshot;
  startedAt: number;
  /** End time of the run, or the current time. */
  endedAt: number;
}

/** Waterfall of the steps, tools and other operations: a table with bars. */
export function Waterfall({ view, startedAt, endedAt }: WaterfallProps) {
  const { t, format } = useText();
  const [onlyStepsAndTools, setOnlyStepsAndTools] = useState(false);
  const [visibleCount, setVisibleCount] = useState(pageSize);
  const { parts, steps, usage } = view;
  const allSpans = useMemo(() => spansOf({ parts, steps, ...(usage !== undefined && { usage }) }), [parts, steps, usage]);
  const spans = onlyStepsAndTools ? allSpans.filter((span) => span.kind === "step" || span.kind === "tool") : allSpans;
  if (allSpans.length === 0) return null;
  const axis = axisOf(view, startedAt, endedAt);
  const remaining = spans.length - visibleCount;
  const nameOf = (span: Span): string => {
    if (span.kind === "thinking") return t.inspect.thinkingOf(span.name);
    if (span.kind === "text") return t.inspect.textName;
    return span.name === "" ? t.inspect.kind[span.kind] : span.name;
  };
  return (
    <div>
      <div className={style["head"]}>
        <h2>{t.inspect.waterfall}</h2>
        <label className={style["checkbox"]}>
          <input type="checkbox" checked={onlyStepsAndTools} onChange={(change) => setOnlyStepsAndTools(change.target.checked)} />
          {t.inspect.onlyStepsAndTools}
        </label>
      </div>
      <div className={style["tableContainer"]} tabIndex={0} role="group" aria-label={t.inspect.waterfall}>
        <table className={classNames(style["table"], style["waterfall"])}>
          <thead>
            <tr>
              <th scope="col">{t.inspect.what}</th>
              <th scope="col" className={style["number"]}>
                {t.inspect.startedAfter}
              </th>
              <th scope="col" className={style["number"]}>
                {t.inspect.duration}
              </th>
              <th scope="col" className={style["number"]}>
                {t.inspect.tokens}
              </th>
              <td aria-hidden="true" className={style["scale"]}>
                <span className="tabular-nums">{axis.isCompressed ? t.inspect.waitingCompressed : format.duration(endedAt - startedAt)}</span>
              </td>
            </tr>
          </thead>
          <tbody>
            {spans.slice(0, visibleCount).map((span) => {
              const end = span.endedAt ?? endedAt;
              const from = axis.at(span.startedAt);
              const width = axis.at(end) - from;
              return (
                <tr key={span.id} data-kind={span.kind}>
                  <th scope="row" className={style["nameCell"]}>
                    <span className={style["name"]} style={{ paddingLeft: Math.min(span.depth, 8) * 16 }}>
                      <span className={style["dot"]} aria-hidden="true" />
                      <span className="visually-hidden">{t.inspect.kind[span.kind]} </span>
                      <span className={style["nameText"]} title={nameOf(span)}>
                        {nameOf(span)}
                      </span>
                      {span.hasFailed && (
                        <span className={style["failed"]}>
                          <Icon name="cross" size={12} />
                          <span className="visually-hidden">{t.status.failed}</span>
                        </span>
                      )}
                    </span>
                  </th>
                  <td className={style["number"]}>{format.duration(span.startedAt - startedAt)}</td>
                  <td className={style["number"]}>{span.endedAt === undefined ? t.inspect.running : format.duration(end - span.startedAt)}</td>
                  <td className={style["number"]}>{span.tokens === undefined ? "" : format.number(span.tokens)}</td>
                  <td aria-hidden="true" className={style["track"]}>
                    <span className={classNames(style["bar"], span.endedAt === undefined && style["open"])} style={{ left: `${from}%`, width: `max(3px, ${width}%)` }} />
                  </td>
                </tr>
              );
            })}
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
