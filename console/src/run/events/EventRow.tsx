import type { RunwireEvent } from "@runwire/client";
import { memo } from "react";
import { useText } from "../../text";
import { classes } from "../../ui";
import { familyOf, summaryOf } from "./family";
import style from "./EventRow.module.css";

interface EventRowProps {
  event: RunwireEvent;
  /** Its place among all events. */
  index: number;
  count: number;
  startedAt: number;
  isSelected: boolean;
  onSelect(): void;
}

/** One event on one line. */
export const EventRow = memo(
  function EventRow({ event, index, count, startedAt, isSelected, onSelect }: EventRowProps) {
    const { format } = useText();
    const at = new Date(event.at);
    return (
      <div
        id={`event-${index}`}
        role="option"
        aria-selected={isSelected}
        aria-posinset={index + 1}
        aria-setsize={count}
        className={classes(style["row"], isSelected && style["selected"])}
        data-family={familyOf(event.type)}
        onClick={onSelect}
      >
        <span className={classes(style["seq"], "figures")}>{event.seq}</span>
        <time className={classes(style["clock"], "figures")} dateTime={event.at} title={format.exact(at)}>
          {format.clock(at)}
        </time>
        <span className={classes(style["offset"], "figures")}>{offsetOf(at.getTime() - startedAt)}</span>
        <span className={style["mark"]} aria-hidden="true" />
        <span className={style["type"]}>{event.type}</span>
        <span className={style["summary"]}>{summaryOf(event)}</span>
      </div>
    );
  },
  // An event never changes, and selecting is always the same act on it.
  (before, after) => before.event === after.event && before.isSelected === after.isSelected && before.startedAt === after.startedAt,
);

/** A stretch in which nothing happened, as a thin mark in place of empty space. */
export function GapRow({ from, to }: { from: RunwireEvent | undefined; to: RunwireEvent }) {
  const { format } = useText();
  const length = from === undefined ? 0 : Date.parse(to.at) - Date.parse(from.at);
  return (
    <div className={style["gap"]} aria-hidden="true">
      <span className={classes(style["gapWords"], "figures")}>{format.duration(length)}</span>
    </div>
  );
}

/** Writes a stretch since the start in as little room as it takes: `+4.218`, `+3:07.5`. */
export function offsetOf(millis: number): string {
  if (!Number.isFinite(millis)) return "";
  const sign = millis < 0 ? "−" : "+";
  const whole = Math.abs(millis);
  if (whole < 60_000) return `${sign}${(whole / 1000).toFixed(3)}`;
  const minutes = Math.floor(whole / 60_000);
  const seconds = ((whole % 60_000) / 1000).toFixed(1).padStart(4, "0");
  if (minutes < 60) return `${sign}${minutes}:${seconds}`;
  return `${sign}${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, "0")}:${seconds.slice(0, 2)}`;
}
