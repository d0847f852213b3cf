import { useSyncExternalStore } from "react";
import { useText } from "../text";
import { Tooltip } from "./Tooltip";

/** Creates a clock shared by the page: one timer for all subscribers. */
function createClock(period: number) {
  let now = Date.now();
  let timer: ReturnType<typeof setInterval> | undefined;
  const listeners = new Set<() => void>();
  const tick = () => {
    now = Date.now();
    for (const listener of listeners) listener();
  };
  return {
    subscribe(listener: () => void) {
      listeners.add(listener);
      if (timer === undefined) {
        now = Date.now();
        timer = setInterval(tick, period);
      }
      return () => {
        listeners.delete(listener);
        if (listeners.size > 0) return;
        clearInterval(timer);
        timer = undefined;
      };
    },
    now: () => (timer === undefined ? (now = Math.floor(Date.now() / period) * period) : now),
  };
}

const slowClock = createClock(10_000);
const secondClock = createClock(1000);
const stoppedClock = { subscribe: () => () => {}, now: () => 0 };

/** Returns the time in milliseconds, updated every second if `ticking`. */
export function useNow(ticking: boolean): number {
  const clock = ticking ? secondClock : stoppedClock;
  return useSyncExternalStore(clock.subscribe, clock.now);
}

interface TimeProps {
  at: string | number | Date;
  /** Formats the relative time. */
  formatText?: (ago: string) => string;
}

/** A relative time with the exact time as tooltip. */
export function Time({ at, formatText = (ago) => ago }: TimeProps) {
  const { format } = useText();
  const now = useSyncExternalStore(slowClock.subscribe, slowClock.now);
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return null;
  return (
    <Tooltip text={format.exact(date)}>
      <time dateTime={date.toISOString()}>{formatText(format.ago(date, new Date(Math.max(now, Date.now() - 10_000))))}</time>
    </Tooltip>
  );
}

interface DurationProps {
  from: string | number | Date | null | undefined;
  /** Without an end it ticks, unless `still`. */
  to?: string | number | Date | null | undefined;
  still?: boolean;
}

/** A duration, which ticks until it has an end. */
export function Duration({ from, to, still: isStill = false }: DurationProps) {
  const { format } = useText();
  const open = to === null || to === undefined;
  const now = useNow(open && !isStill);
  if (from === null || from === undefined || (open && isStill)) return null;
  const start = new Date(from).getTime();
  const end = open ? Math.max(now, start) : new Date(to).getTime();
  if (Number.isNaN(start) || Number.isNaN(end)) return null;
  const shown = open ? Math.floor((end - start) / 1000) * 1000 : end - start;
  return <span className="tabular-nums">{format.duration(open ? Math.max(shown, 1000) : shown)}</span>;
}
