import { memo, useCallback, useMemo, useRef, type ReactNode } from "react";
import type { Run } from "@runwire/client";
import { Link } from "../router";
import { useText } from "../text";
import { classes, Duration, Status, Time, Tooltip, useRowKeys, VirtualList, type VirtualListHandle } from "../ui";
import { firstLine, shortId } from "./words";
import style from "./RunTable.module.css";

interface RunTableProps {
  runs: readonly Run[];
  label: string;
  onEnd?: (() => void) | undefined;
  /** Leaves out what is the same in every row. */
  without?: "agent" | "thread";
}

/** What the table's head covers of the rows under it. */
const headHeight = 36;

/** A table of runs that draws only the rows in sight. */
export const RunTable = memo(function RunTable({ runs, label, onEnd, without }: RunTableProps) {
  const { t } = useText();
  const frame = useRef<HTMLDivElement>(null);
  const list = useRef<VirtualListHandle>(null);
  const keys = useMemo(() => runs.map((run) => run.run_id), [runs]);
  useRowKeys(keys, frame, list);
  const keyOf = useCallback((index: number) => runs[index]?.run_id ?? index, [runs]);
  const row = (index: number) => {
    const run = runs[index];
    return run === undefined ? null : <RunRow run={run} without={without} />;
  };
  return (
    <div
      ref={frame}
      role="table"
      aria-label={label}
      aria-rowcount={runs.length + 1}
      className={classes(style["table"], without && style[`no-${without}`])}
    >
      <div role="rowgroup" className={style["sticky"]}>
        <div role="row" aria-rowindex={1} className={classes(style["row"], style["head"])}>
          <Head name={t.runs.status} />
          <Head name={t.runs.run} />
          {without !== "agent" && <Head name={t.runs.agent} />}
          {without !== "thread" && <Head name={t.runs.thread} />}
          <Head name={t.runs.duration} right />
          <Head name={t.runs.tokens} right />
          <Head name={t.runs.started} right />
        </div>
      </div>
      <VirtualList
        role="rowgroup"
        handle={list}
        count={runs.length}
        estimate={46}
        margin={headHeight}
        keyOf={keyOf}
        row={row}
        onEnd={onEnd}
        rowProps={(index) => ({ role: "row", "aria-rowindex": index + 2, className: style["frame"] })}
      />
    </div>
  );
});

function Head({ name, right = false }: { name: string; right?: boolean }) {
  return (
    <span role="columnheader" className={classes(right && style["right"])}>
      {name}
    </span>
  );
}

function Cell({ name, right = false, children }: { name: string; right?: boolean; children: ReactNode }) {
  return (
    <span role="cell" className={classes(style["cell"], style[name], right && style["right"])}>
      {children}
    </span>
  );
}

const RunRow = memo(function RunRow({ run, without }: { run: Run; without: "agent" | "thread" | undefined }) {
  const { t, format } = useText();
  const asked = firstLine(run.message);
  const questions = run.interactions.filter((question) => question.status === "open");
  const asks = questions.length === 0 ? null : (questions[0]?.title ?? t.runs.asks(questions.length));
  const aside = run.error?.message ?? asks;
  return (
    <div className={style["row"]} role="presentation">
      <Cell name="status">
        <Status status={run.status} />
      </Cell>
      <Cell name="run">
        <Link to={{ name: "run", id: run.run_id, tab: "conversation" }} className={style["link"]} data-row={run.run_id} title={run.run_id}>
          {asked ?? <span className="mono">{shortId(run.run_id)}</span>}
        </Link>
        {aside !== null && <span className={style["aside"]}>{aside}</span>}
      </Cell>
      {without !== "agent" && (
        <Cell name="agent">
          {run.agent === null ? null : (
            <Link to={{ name: "agent", id: run.agent }} className={style["above"]}>
              {run.agent}
            </Link>
          )}
        </Cell>
      )}
      {without !== "thread" && (
        <Cell name="thread">
          <Tooltip text={run.thread_id} className={style["fit"]}>
            <Link to={{ name: "thread", id: run.thread_id }} className={classes(style["above"], "mono")}>
              {shortId(run.thread_id)}
            </Link>
          </Tooltip>
        </Cell>
      )}
      <Cell name="duration" right>
        <Duration from={run.started_at} to={run.ended_at} />
      </Cell>
      <Cell name="tokens" right>
        {run.usage === null ? null : format.short(run.usage.total_tokens)}
      </Cell>
      <Cell name="started" right>
        <Time at={run.started_at ?? run.created_at} />
      </Cell>
    </div>
  );
});
