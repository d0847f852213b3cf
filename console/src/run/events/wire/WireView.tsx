import { DIALECTS, isClosed } from "@runwire/client";
import { useRef, useState, type KeyboardEvent, type ReactNode } from "react";
import { useRouter } from "../../../router";
import { useKeys } from "../../../shell/useKeys";
import { useText } from "../../../text";
import { Button, Empty, ErrorAlert, Loading, SegmentedControl, classNames } from "../../../ui";
import type { RunTabProps } from "../../tabProps";
import { framings, type Framing } from "../shellCommand";
import { parseDialect } from "../dialects";
import { ExportButtons } from "../ExportButtons";
import { RowList, type RowListHandle } from "../RowList";
import { useFullHeight } from "../../useFullHeight";
import { useWire } from "./useWire";
import { WireDetails } from "./WireDetails";
import { WireRow } from "./WireRow";
import events from "../Events.module.css";
import style from "./Wire.module.css";

/** The frames of a run as the server sends them, in one or two dialects and any framing. */
export function WireView({ id, run, viewSwitch }: RunTabProps & { viewSwitch: ReactNode }) {
  const { t, format } = useText();
  const { query, setQuery } = useRouter();
  const dialect = parseDialect(query.get("dialect")) ?? "runwire";
  const secondDialect = parseDialect(query.get("beside"));
  const framing = framings.find((framing) => framing === query.get("framing")) ?? "sse";
  const isLive = !isClosed(run.status);
  // Follow only live events: not while catching up, nor in a run that has ended.
  const isFollowed = isLive && run.isCaughtUp;
  const [attempt, setAttempt] = useState(0);
  const { records, sides } = useWire(id, dialect, secondDialect, framing, !isLive, attempt);
  const [follow, setFollow] = useState(true);
  const [selected, setSelected] = useState<number>();
  const list = useRef<RowListHandle>(null);
  const panes = useFullHeight<HTMLDivElement>();
  const shownDialects = secondDialect === undefined ? ([dialect] as const) : ([dialect, secondDialect] as const);

  const index = selected === undefined ? -1 : records.rows.findIndex((row) => row.seq === selected);
  const select = (row: number) => {
    const next = records.rows[Math.max(0, Math.min(row, records.rows.length - 1))];
    if (next === undefined) return;
    setSelected(next.seq);
    setFollow(false);
    list.current?.reveal(records.rows.indexOf(next));
  };
  const close = () => {
    setSelected(undefined);
    list.current?.focus();
  };
  useKeys({
    j: () => select(index + 1),
    k: () => select(index === -1 ? records.rows.length - 1 : index - 1),
    f: () => setFollow(isLive && !follow),
    Escape: () => selected !== undefined && close(),
  });
  const onKeyDown = (event: KeyboardEvent) => {
    const target = { ArrowDown: index + 1, ArrowUp: index - 1, PageDown: index + 10, PageUp: index - 10, Home: 0, End: records.rows.length - 1 }[event.key];
    if (target === undefined) return;
    event.preventDefault();
    select(target);
  };

  const failed = sides.find((side) => side.error !== undefined);
  const isTruncated = sides.some((side) => side.isTruncated);
  const row = index === -1 ? undefined : records.rows[index];
  const isDone = sides[0].isOver && (secondDialect === undefined || sides[1].isOver);
  return (
    <>
      <div className={events["bar"]}>
        {viewSwitch}
        <SegmentedControl<Framing>
          label={t.inspect.framing}
          value={framing}
          options={framings.map((value) => ({ value, name: t.inspect.framings[value] }))}
          onChange={(value) => setQuery({ framing: value === "sse" ? null : value })}
        />
        <span className={events["spacer"]} />
        {isLive && (
          <Button size="small" variant="quiet" icon={follow ? "pause" : "arrowDown"} aria-pressed={follow} onClick={() => setFollow(!follow)}>
            {follow ? t.inspect.pause : t.inspect.follow}
          </Button>
        )}
        <ExportButtons run={id} dialect={dialect} framing={framing} after={selected === undefined ? undefined : String(selected - 1)} />
      </div>
      <div className={events["bar"]}>
        <SegmentedControl
          label={t.inspect.dialect}
          value={dialect}
          className={style["dialects"]}
          options={DIALECTS.map((value) => ({ value, name: value }))}
          onChange={(value) => setQuery({ dialect: value === "runwire" ? null : value })}
        />
        <select className={classNames("field", style["secondDialect"])} aria-label={t.inspect.secondDialect} value={secondDialect ?? ""} onChange={(change) => setQuery({ beside: change.target.value })}>
          <option value="">{t.inspect.noSecondDialect}</option>
          {DIALECTS.map((value) => (
            <option key={value} value={value}>
              {t.inspect.compareDialect(value)}
            </option>
          ))}
        </select>
      </div>
      {failed && (
        <ErrorAlert
          error={failed.error}
          onRetry={() => setAttempt(attempt + 1)}
        />
      )}
      <div ref={panes} className={classNames(events["panes"], row && events["split"])}>
        <div className={classNames(events["list"], style["wire"])}>
          <div className={style["heads"]}>
            {shownDialects.map((name, side) => (
              <div key={name + String(side)} className={style["head"]}>
                <h2 className={style["name"]}>{name}</h2>
                <span className={classNames(style["figures"], "tabular-nums")}>
                  {t.inspect.frames(records.frames[side as 0 | 1], format.number(records.frames[side as 0 | 1]))}
                  {" · "}
                  {t.json.characters(format.short(records.characters[side as 0 | 1]))}
                </span>
              </div>
            ))}
          </div>
          {isTruncated && <p className={style["truncated"]}>{t.inspect.truncated}</p>}
          {records.rows.length === 0 ? (
            <div className={events["emptyState"]}>{isDone ? <Empty icon="runs" title={t.inspect.noFrames} /> : failed === undefined && <Loading lines={8} />}</div>
          ) : (
            <RowList
              role="listbox"
              aria-label={t.inspect.framesIn(shownDialects.join(", "))}
              aria-activedescendant={selected === undefined ? undefined : `record-${selected}`}
              className={style["rows"]}
              handle={list}
              count={records.rows.length}
              tops={records.tops}
              keyOf={(index) => records.rows[index]?.seq ?? index}
              follow={follow && isFollowed}
              onFollow={(next) => isFollowed && setFollow(next)}
              onKeyDown={onKeyDown}
              row={(index) => {
                const record = records.rows[index];
                if (record === undefined) return null;
                return <WireRow row={record} isDouble={secondDialect !== undefined} framing={framing} isSelected={record.seq === selected} onSelect={() => (setSelected(record.seq), setFollow(false))} />;
              }}
            />
          )}
        </div>
        {row && <WireDetails row={row} dialects={shownDialects} onClose={close} />}
      </div>
    </>
  );
}
