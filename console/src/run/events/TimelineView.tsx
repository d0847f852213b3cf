import { isClosed } from "@runwire/client";
import { useDeferredValue, useEffect, useMemo, useRef, useState, type KeyboardEvent, type ReactNode } from "react";
import { useRouter } from "../../router";
import { useKeys } from "../../shell/keys";
import { useText } from "../../text";
import { Button, Empty, Loading, classes } from "../../ui";
import type { RunTabProps } from "../tabProps";
import { Download } from "./Download";
import { EventDetails } from "./EventDetails";
import { EventRow, GapRow } from "./EventRow";
import { families, familyOf } from "./family";
import { filterFrom, toggled } from "./filter";
import { RowList, type RowListHandle } from "./RowList";
import { useFullHeight } from "../useFullHeight";
import { useTimeline } from "./useTimeline";
import style from "./Events.module.css";

/** How long a person may pause between two letters of a filter, in milliseconds. */
const typing = 180;

/** Shows every event of a run in the order of time, with a filter, and one of them whole. */
export function TimelineView({ id, run, choice }: RunTabProps & { choice: ReactNode }) {
  const { t, format } = useText();
  const { query, setQuery } = useRouter();
  const { events, version } = run;
  const isLive = !isClosed(run.status);
  // What is only being caught up with would rush by, and a run that is long over would leave its reader at the end.
  const isFollowed = isLive && run.isCaughtUp;
  const timeline = useTimeline(events, version, useDeferredValue(query));
  const filter = useMemo(() => filterFrom(query), [query]);
  const [follow, setFollow] = useState(true);
  const [selected, setSelected] = useState(-1);
  const [isOpen, setOpen] = useState(false);
  const list = useRef<RowListHandle>(null);
  const panes = useFullHeight<HTMLDivElement>();
  const [text, setText] = useState(filter.text);

  useEffect(() => {
    const timer = setTimeout(() => setQuery({ text }), typing);
    return () => clearTimeout(timer);
  }, [text, setQuery]);

  const select = (row: number) => {
    const index = timeline.rows[row];
    if (index === undefined || index < 0) return;
    setSelected(index);
    setFollow(false);
    list.current?.reveal(row);
  };
  const move = (by: 1 | -1, far = 1) => {
    const here = timeline.rowOf(selected);
    const from = here === -1 ? (by === 1 ? 0 : timeline.rows.length - 1) : Math.max(0, Math.min(here + by * far, timeline.rows.length - 1));
    const row = timeline.step(from, by);
    if (row !== -1) select(row);
  };
  const close = () => {
    setOpen(false);
    list.current?.focus();
  };
  const go = () => {
    setFollow(isLive);
    list.current?.reveal(timeline.rows.length - 1);
  };
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    f: () => (follow ? setFollow(false) : go()),
    Enter: () => selected !== -1 && setOpen(true),
    Escape: () => isOpen && close(),
  });
  const pressed = (event: KeyboardEvent) => {
    const acts: Record<string, () => void> = {
      ArrowDown: () => move(1),
      ArrowUp: () => move(-1),
      PageDown: () => move(1, 15),
      PageUp: () => move(-1, 15),
      Home: () => select(timeline.step(0, 1)),
      End: () => select(timeline.step(timeline.rows.length - 1, -1)),
    };
    const act = acts[event.key];
    if (act === undefined) return;
    event.preventDefault();
    act();
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
        {choice}
        <input
          type="search"
          data-filter=""
          className={classes("field", style["search"])}
          value={text}
          placeholder={t.inspect.search}
          aria-label={t.inspect.search}
          onChange={(change) => setText(change.target.value)}
          onKeyDown={(key) => key.key === "Escape" && (setText(""), list.current?.focus())}
        />
        <span className={classes(style["count"], "figures")} role="status">
          {timeline.shown === events.length
            ? t.inspect.eventCount(events.length, format.number(events.length))
            : t.inspect.someEvents(format.number(timeline.shown), format.number(events.length))}
        </span>
        <span className={style["spring"]} />
        {isLive && (
          <Button size="small" variant="quiet" icon={follow ? "pause" : "arrowDown"} aria-pressed={follow} onClick={() => (follow ? setFollow(false) : go())}>
            {follow ? t.inspect.pause : t.inspect.follow}
          </Button>
        )}
        <Download run={id} dialect="runwire" framing="sse" />
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
              onClick={() => setQuery({ type: toggled(filter.types, name) })}
            >
              {isFamily ? t.inspect.family[name as (typeof families)[number]] : name}
              <span className={classes(style["chipCount"], "figures")}>{format.short(counts.get(name) ?? timeline.counts.get(name) ?? 0)}</span>
            </button>
          );
        })}
        {(filter.types.size > 0 || text !== "") && (
          <Button size="small" variant="quiet" onClick={() => (setText(""), setQuery({ type: null, text: null }))}>
            {t.action.clearFilters}
          </Button>
        )}
      </div>
      <div ref={panes} className={classes(style["panes"], event && style["split"])}>
        {timeline.rows.length === 0 ? (
          <div className={style["nothing"]}>
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
            onKeyDown={pressed}
            row={(row) => {
              const index = timeline.rows[row] ?? 0;
              const shown = events[index < 0 ? ~index : index];
              if (shown === undefined) return null;
              if (index < 0) return <GapRow from={events[timeline.rows[row - 1] ?? 0]} to={shown} />;
              return (
                <EventRow
                  event={shown}
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
        {event && <EventDetails run={id} event={event} startedAt={startedAt} onClose={close} onType={(type) => setQuery({ type: toggled(new Set(), type) })} />}
      </div>
    </>
  );
}
