import { memo, useCallback, useMemo, useRef, type ReactNode } from "react";
import type { Run } from "@runwire/client";
import { Link } from "../router";
import { useText } from "../text";
import { classNames, Duration, Status, Time, Tooltip, useRowKeys, VirtualList, type VirtualListHandle } from "../ui";
import { firstLine, shortId } from "./runText";
import style from "./RunTable.module.css";

interface RunTableProps {
  runs: readonly Run[];
  label: string;
  onEnd?: (() => void) | undefined;
  /** Column to omit, because it is the same in every row. */
  without?: "agent" | "thread";
}

/** Height of the sticky header in pixels. */
const headerHeight = 36;

/** A virtualized table of runs. */
export const RunTable = memo(function RunTable({ runs, label, onEnd, without }: RunTableProps) {
  const { t } = useText();
  const table = useRef<HTMLDivElement>(null);
  const list = useRef<VirtualListHandle>(null);
  const keys = useMemo(() => runs.map((run) => run.run_id), [runs]);
  useRowKeys(keys, table, list);
  const keyOf = useCallback((index: number) => runs[index]?.run_id ?? index, [runs]);
  const row = (index: number) => {
    const run = runs[index];
    return run === undefined ? null : <RunRow run={run} without={without} />;
  };
  return (
    <div
      ref={table}
      role="table"
      aria-label={label}
      aria-rowcount={runs.length + 1}
      className={classNames(style["table"], without && style[`no-${without}`])}
    >
      <div role="rowgroup" className={style["sticky"]}>
        <div role="row" aria-rowindex={1} className={classNames(style["row"], style["head"])}>
          <ColumnHeader name={t.runs.status} />
          <ColumnHeader name={t.runs.run} />
          {without !== "agent" && <ColumnHeader name={t.runs.agent} />}
          {without !== "thread" && <ColumnHeader name={t.runs.thread} />}
          <ColumnHeader name={t.runs.duration} right />
          <ColumnHeader name={t.runs.tokens} right />
          <ColumnHeader name={t.runs.started} right />
        </div>
      </div>
      <VirtualList
        role="rowgroup"
        handle={list}
        count={runs.length}
        estimate={46}
        margin={headerHeight}
        keyOf={keyOf}
        row={row}
        onEnd={onEnd}
        rowProps={(index) => ({ role: "row", "aria-rowindex": index + 2, className: style["rowContainer"] })}
      />
    </div>
  );
});

function ColumnHeader({ name, right = false }: { name: string; right?: boolean }) {
  return (
    <span role="columnheader" className={classNames(right && style["right"])}>
      {name}
    </span>
  );
}

function Cell({ name, right = false, children }: { name: string; right?: boolean; children: ReactNode }) {
  return (
    <span role="cell" className={classNames(style["cell"], style[name], right && style["right"])}>
      {children}
    </span>
  );
}

const RunRow = memo(function RunRow({ run, without }: { run: Run; without: "agent" | "thread" | undefined }) {
  const { t, format } = useText();
  const message = firstLine(run.message);
  const openInteractions = run.interactions.filter((interaction) => interaction.status === "open");
  const interactionText = openInteractions.length === 0 ? null : (openInteractions[0]?.title ?? t.runs.openInteractions(openInteractions.length));
  const note = run.error?.message ?? interactionText;
  return (
    <div className={style["row"]} role="presentation">
      <Cell name="status">
        <Status status={run.status} />
      </Cell>
      <Cell name="run">
        <Link to={{ name: "run", id: run.run_id, tab: "conversation" }} className={style["link"]} data-row={run.run_id} title={run.run_id}>
          {message ?? <span className="mono">{shortId(run.run_id)}</span>}
        </Link>
        {note !== null && <span className={style["note"]}>{note}</span>}
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
            <Link to={{ name: "thread", id: run.thread_id }} className={classNames(style["above"], "mono")}>
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
