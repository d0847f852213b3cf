import { useSyncExternalStore } from "react";
import { useText } from "../text";
import { Tooltip } from "./Tooltip";

/** One clock for the whole page, so that a thousand times cost one timer. */
function clockOf(period: number) {
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

const slow = clockOf(10_000);
const fast = clockOf(1000);
const still = { subscribe: () => () => {}, now: () => 0 };

/** Gives the time in milliseconds, newly every second, or not at all. */
export function useNow(ticking: boolean): number {
  const clock = ticking ? fast : still;
  return useSyncExternalStore(clock.subscribe, clock.now);
}

interface TimeProps {
  at: string | number | Date;
  /** Says what happened then. */
  words?: (ago: string) => string;
}

/** Shows a moment relative to now, and exactly on hover. */
export function Time({ at, words = (ago) => ago }: TimeProps) {
  const { format } = useText();
  const now = useSyncExternalStore(slow.subscribe, slow.now);
  const moment = new Date(at);
  if (Number.isNaN(moment.getTime())) return null;
  return (
    <Tooltip text={format.exact(moment)}>
      <time dateTime={moment.toISOString()}>{words(format.ago(moment, new Date(Math.max(now, Date.now() - 10_000))))}</time>
    </Tooltip>
  );
}

interface DurationProps {
  from: string | number | Date | null | undefined;
  /** Without an end it ticks, unless `still`. */
  to?: string | number | Date | null | undefined;
  still?: boolean;
}

/** Shows how long something took, or takes. */
export function Duration({ from, to, still: stands = false }: DurationProps) {
  const { format } = useText();
  const open = to === null || to === undefined;
  const now = useNow(open && !stands);
  if (from === null || from === undefined || (open && stands)) return null;
  const start = new Date(from).getTime();
  const end = open ? Math.max(now, start) : new Date(to).getTime();
  if (Number.isNaN(start) || Number.isNaN(end)) return null;
  const shown = open ? Math.floor((end - start) / 1000) * 1000 : end - start;
  return <span className="figures">{format.duration(open ? Math.max(shown, 1000) : shown)}</span>;
}
