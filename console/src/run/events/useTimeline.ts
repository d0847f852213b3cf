import type { RunwireEvent } from "@runwire/client";
import { useLayoutEffect, useMemo, useReducer } from "react";
import { filterFrom, matcher } from "./filter";
import { Timeline } from "./timeline";

/** How long one task sorts events in, in milliseconds; the page stays smooth meanwhile. */
const slice = 8;

/** Keeps the rows of a timeline in step with the events and with the filter in the address. */
export function useTimeline(events: readonly RunwireEvent[], version: number, query: URLSearchParams) {
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  const [type, text] = [query.get("type") ?? "", query.get("text") ?? ""];
  const timeline = useMemo(
    () => new Timeline(matcher(filterFrom(new URLSearchParams({ type, text })))),
    // Another run has another array; the same one only grows.
    [events, type, text],
  );
  useLayoutEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const work = () => {
      const end = performance.now() + slice;
      const before = timeline.rows.length;
      const isDone = timeline.extend(events, () => performance.now() > end);
      if (!isDone) timer = setTimeout(work);
      if (!isDone || timeline.rows.length !== before) redraw();
    };
    work();
    return () => clearTimeout(timer);
  }, [timeline, events, version]);
  return timeline;
}
