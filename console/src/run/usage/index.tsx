import { isClosed, type RunViewSnapshot } from "@runwire/client";
import { useMemo, type ReactNode } from "react";
import { useText } from "../../text";
import { Empty, Loading, useNow } from "../../ui";
import type { RunTabProps } from "../tabProps";
import { CallTable, AggregateTable } from "./UsageTables";
import { aggregateSteps, aggregateTools, waitingTime } from "./spans";
import { useThrottledValue } from "./useThrottledValue";
import { Waterfall } from "./Waterfall";
import style from "./Usage.module.css";

/** Update interval of a live run in milliseconds. */
const updateInterval = 400;

/** Tab of the usage: tokens and time by step, tool and model call. */
export function UsageTab({ run }: RunTabProps) {
  // Before all stored events are read, the figures would be wrong.
  return run.isCaughtUp ? <ThrottledUsage view={run.view} /> : <Loading lines={6} />;
}

function ThrottledUsage(props: { view: RunViewSnapshot }) {
  const { t } = useText();
  const view = useThrottledValue(props.view, updateInterval);
  if (view.startedAt === undefined) return <Empty icon="chart" title={t.inspect.noUsage} detail={t.inspect.noUsageDetail} />;
  return <Usage view={view} startedAt={view.startedAt} />;
}

function Usage({ view, startedAt }: { view: RunViewSnapshot; startedAt: number }) {
  const { t, format } = useText();
  const ticking = useNow(!isClosed(view.status));
  const now = view.endedAt ?? Math.max(ticking, startedAt);
  const { usage, summary } = view;
  const steps = useMemo(() => aggregateSteps(view, now), [view, now]);
  const tools = useMemo(() => aggregateTools(view, now), [view, now]);
  const waiting = waitingTime(view, now);
  const calls = usage?.calls.length ?? 0;
  return (
    <section className={style["tab"]}>
      <dl className={style["figures"]}>
        <Figure name={t.inspect.duration} value={format.duration(view.endedAt === undefined ? Math.floor((now - startedAt) / 1000) * 1000 : now - startedAt)} />
        {waiting > 0 && <Figure name={t.inspect.waitingTime} value={format.duration(waiting)} />}
        {usage !== undefined && (
          <>
            <Figure name={t.inspect.input} value={format.number(usage.promptTokens)} unit={t.inspect.tokens} />
            {usage.cachedTokens !== undefined && <Figure name={t.inspect.cached} value={format.number(usage.cachedTokens)} unit={t.inspect.tokens} />}
            <Figure name={t.inspect.output} value={format.number(usage.completionTokens)} unit={t.inspect.tokens} />
            <Figure name={t.inspect.total} value={format.number(usage.totalTokens)} unit={t.inspect.tokens} />
          </>
        )}
        {calls > 0 && <Figure name={t.inspect.modelCalls} value={format.number(calls)} />}
        <Figure name={t.inspect.toolCalls} value={format.number(Math.max(view.counts.toolCalls, summary?.tool_calls ?? 0))} />
      </dl>
      {usage === undefined && <p className={style["note"]}>{t.inspect.noTokens}</p>}
      <Waterfall view={view} startedAt={startedAt} endedAt={now} />
      {steps.length > 0 && <AggregateTable title={t.inspect.byStepTitle} nameTitle={t.inspect.step} aggregates={steps} runDuration={now - startedAt} />}
      {tools.length > 0 && <AggregateTable title={t.inspect.byToolTitle} nameTitle={t.inspect.kind.tool} aggregates={tools} runDuration={now - startedAt} />}
      {usage !== undefined && calls > 0 && <CallTable usage={usage} startedAt={startedAt} />}
    </section>
  );
}

function Figure({ name, value, unit }: { name: string; value: ReactNode; unit?: string }) {
  return (
    <div className={style["figure"]}>
      <dt>{name}</dt>
      <dd className="tabular-nums">
        {value} {unit && <span className={style["unit"]}>{unit}</span>}
      </dd>
    </div>
  );
}
