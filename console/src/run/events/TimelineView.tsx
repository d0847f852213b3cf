import { isClosed } from "@runwire/client";
import { useDeferredValue, useEffect, useMemo, useRef, useState, type KeyboardEvent, type ReactNode } from "react";
import { useRouter } from "../../router";
import { useKeys } from "../../shell/useKeys";
import { useText } from "../../text";
import { Button, Empty, Loading, classNames } from "../../ui";
import type { RunTabProps } from "../tabProps";
import { ExportButtons } from "./ExportButtons";
import { EventDetails } from "./EventDetails";
import { EventRow, GapRow } from "./EventRow";
import { families, familyOf } from "./eventFamily";
import { parseFilter, toggleType } from "./filter";
import { RowList, type RowListHandle } from "./RowList";
import { useFullHeight } from "../useFullHeight";
import { useTimeline } from "./useTimeline";
import style from "./Events.module.css";

/** Debounce of the filter input in milliseconds. */
const filterDebounce = 180;

/** Timeline of the events with a filter and the details of the selected event. */
export function TimelineView({ id, run, viewSwitch }: RunTabProps & { viewSwitch: ReactNode }) {
  const { t, format } = useText();
  const { query, setQuery } = useRouter();
  const { events, version } = run;
  const isLive = !isClosed(run.status);
  // Follow only live events: not while catching up, nor in a run that has ended.
  const isFollowed = isLive && run.isCaughtUp;
  const timeline = useTimeline(events, version, useDeferredValue(query));
  const filter = useMemo(() => parseFilter(query), [query]);
  const [follow, setFollow] = useState(true);
  const [selected, setSelected] = useState(-1);
  const [isOpen, setOpen] = useState(false);
  const list = useRef<RowListHandle>(null);
  const panes = useFullHeight<HTMLDivElement>();
  const [text, setText] = useState(filter.text);

  useEffect(() => {
    const timer = setTimeout(() => setQuery({ text }), filterDebounce);
    return () => clearTimeout(timer);
  }, [text, setQuery]);

  const select = (row: number) => {
    const index = timeline.rows[row];
    if (index === undefined || index < 0) return;
    setSelected(index);
    setFollow(false);
    list.current?.reveal(row);
  };
  const move = (by: 1 | -1, distance = 1) => {
    const current = timeline.rowOf(selected);
    const from = current === -1 ? (by === 1 ? 0 : timeline.rows.length - 1) : Math.max(0, Math.min(current + by * distance, timeline.rows.length - 1));
    const row = timeline.nextEventRow(from, by);
    if (row !== -1) select(row);
  };
  const close = () => {
    setOpen(false);
    list.current?.focus();
  };
  const followLatest = () => {
    setFollow(isLive);
    list.current?.reveal(timeline.rows.length - 1);
  };
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    f: () => (follow ? setFollow(false) : followLatest()),
    Enter: () => selected !== -1 && setOpen(true),
    Escape: () => isOpen && close(),
  });
  const onKeyDown = (event: KeyboardEvent) => {
    const actions: Record<string, () => void> = {
      ArrowDown: () => move(1),
      ArrowUp: () => move(-1),
      PageDown: () => move(1, 15),
      PageUp: () => move(-1, 15),
      Home: () => select(timeline.nextEventRow(0, 1)),
      End: () => select(timeline.nextEventRow(timeline.rows.length - 1, -1)),
    };
    const action = actions[event.key];
    if (action === undefined) return;
    event.preventDefault();
    action();
  };

  const counts = new Map<string, number>();
  for (const [type, count] of timeline.counts) counts.set(familyOf(type), (counts.get(familyOf(type)) ?? 0) + count);
  const exact = [...filter.types].filter((type) => !(families as readonly string[]).includes(type));
  const chips = [...families.filter((family) => counts.has(family) || filter.types.has(family)), ...exact];
  const startedAt = Date.parse(events[0]?.at ?? "");
  const event = isOpen ? events[selected] : undefined;

  return (
    <>
      <div className={style["bar"]}>
        {viewSwitch}
        <input
          type="search"
          data-filter=""
          className={classNames("field", style["search"])}
          value={text}
          placeholder={t.inspect.search}
          aria-label={t.inspect.search}
          onChange={(change) => setText(change.target.value)}
          onKeyDown={(key) => key.key === "Escape" && (setText(""), list.current?.focus())}
        />
        <span className={classNames(style["count"], "tabular-nums")} role="status">
          {timeline.matchCount === events.length
            ? t.inspect.eventCount(events.length, format.number(events.length))
            : t.inspect.someEvents(format.number(timeline.matchCount), format.number(events.length))}
        </span>
        <span className={style["spacer"]} />
        {isLive && (
          <Button size="small" variant="quiet" icon={follow ? "pause" : "arrowDown"} aria-pressed={follow} onClick={() => (follow ? setFollow(false) : followLatest())}>
            {follow ? t.inspect.pause : t.inspect.follow}
          </Button>
        )}
        <ExportButtons run={id} dialect="runwire" framing="sse" />
      </div>
      <div className={style["chips"]} role="group" aria-label={t.inspect.families}>
        {chips.map((name) => {
          const family = familyOf(name === "thought" ? "tot" : name);
          const isFamily = (families as readonly string[]).includes(name);
          return (
            <button
              key={name}
              type="button"
              className={style["chip"]}
              data-family={isFamily ? name : family}
              aria-pressed={filter.types.has(name)}
              onClick={() => setQuery({ type: toggleType(filter.types, name) })}
            >
              {isFamily ? t.inspect.family[name as (typeof families)[number]] : name}
              <span className={classNames(style["chipCount"], "tabular-nums")}>{format.short(counts.get(name) ?? timeline.counts.get(name) ?? 0)}</span>
            </button>
          );
        })}
        {(filter.types.size > 0 || text !== "") && (
          <Button size="small" variant="quiet" onClick={() => (setText(""), setQuery({ type: null, text: null }))}>
            {t.action.clearFilters}
          </Button>
        )}
      </div>
      <div ref={panes} className={classNames(style["panes"], event && style["split"])}>
        {timeline.rows.length === 0 ? (
          <div className={style["emptyState"]}>
            {events.length === 0 && !run.isCaughtUp ? (
              <Loading lines={8} />
            ) : (
              <Empty icon="filter" title={events.length === 0 ? t.inspect.noEvents : t.inspect.noneMatch} detail={events.length === 0 ? t.inspect.noEventsDetail : ""} />
            )}
          </div>
        ) : (
          <RowList
            role="listbox"
            aria-label={t.inspect.events}
            aria-activedescendant={timeline.rowOf(selected) === -1 ? undefined : `event-${selected}`}
            className={style["list"]}
            handle={list}
            count={timeline.rows.length}
            tops={timeline.tops}
            keyOf={(row) => timeline.rows[row] ?? row}
            follow={follow && isFollowed}
            onFollow={(next) => isFollowed && setFollow(next)}
            onKeyDown={onKeyDown}
            row={(row) => {
              const index = timeline.rows[row] ?? 0;
              const rowEvent = events[index < 0 ? ~index : index];
              if (rowEvent === undefined) return null;
              if (index < 0) return <GapRow from={events[timeline.rows[row - 1] ?? 0]} to={rowEvent} />;
              return (
                <EventRow
                  event={rowEvent}
                  index={index}
                  startedAt={startedAt}
                  isSelected={index === selected}
                  count={events.length}
                  onSelect={() => {
                    setSelected(index);
                    setOpen(true);
                    setFollow(false);
                  }}
                />
              );
            }}
          />
        )}
        {event && <EventDetails run={id} event={event} startedAt={startedAt} onClose={close} onFilterType={(type) => setQuery({ type: toggleType(new Set(), type) })} />}
      </div>
    </>
  );
}
