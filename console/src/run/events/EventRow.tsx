import type { RunwireEvent } from "@runwire/client";
import { memo } from "react";
import { useText } from "../../text";
import { classNames } from "../../ui";
import { familyOf, summaryOf } from "./eventFamily";
import style from "./EventRow.module.css";

interface EventRowProps {
  event: RunwireEvent;
  /** Index among all events. */
  index: number;
  count: number;
  startedAt: number;
  isSelected: boolean;
  onSelect(): void;
}

/** Row of an event. */
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
        className={classNames(style["row"], isSelected && style["selected"])}
        data-family={familyOf(event.type)}
        onClick={onSelect}
      >
        <span className={classNames(style["seq"], "tabular-nums")}>{event.seq}</span>
        <time className={classNames(style["clock"], "tabular-nums")} dateTime={event.at} title={format.exact(at)}>
          {format.clock(at)}
        </time>
        <span className={classNames(style["offset"], "tabular-nums")}>{formatOffset(at.getTime() - startedAt)}</span>
        <span className={style["mark"]} aria-hidden="true" />
        <span className={style["type"]}>{event.type}</span>
        <span className={style["summary"]}>{summaryOf(event)}</span>
      </div>
    );
  },
  // Events are immutable, and `onSelect` always does the same.
  (before, after) => before.event === after.event && before.isSelected === after.isSelected && before.startedAt === after.startedAt,
);

/** Row of a period without events. */
export function GapRow({ from, to }: { from: RunwireEvent | undefined; to: RunwireEvent }) {
  const { format } = useText();
  const length = from === undefined ? 0 : Date.parse(to.at) - Date.parse(from.at);
  return (
    <div className={style["gap"]} aria-hidden="true">
      <span className={classNames(style["gapLabel"], "tabular-nums")}>{format.duration(length)}</span>
    </div>
  );
}

/** Formats an offset since the start: `+4.218`, `+3:07.5`. */
export function formatOffset(millis: number): string {
  if (!Number.isFinite(millis)) return "";
  const sign = millis < 0 ? "−" : "+";
  const absolute = Math.abs(millis);
  if (absolute < 60_000) return `${sign}${(absolute / 1000).toFixed(3)}`;
  const minutes = Math.floor(absolute / 60_000);
  const seconds = ((absolute % 60_000) / 1000).toFixed(1).padStart(4, "0");
  if (minutes < 60) return `${sign}${minutes}:${seconds}`;
  return `${sign}${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, "0")}:${seconds.slice(0, 2)}`;
}
