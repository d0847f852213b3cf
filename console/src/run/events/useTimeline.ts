import type { RunwireEvent } from "@runwire/client";
import { useLayoutEffect, useMemo, useReducer } from "react";
import { parseFilter, predicateOf } from "./filter";
import { Timeline } from "./timeline";

/** Longest time in milliseconds that one task adds events. */
const sliceMs = 8;

/** Builds the timeline of the events with the filter of the URL query. */
export function useTimeline(events: readonly RunwireEvent[], version: number, query: URLSearchParams) {
  const [, rerender] = useReducer((count: number) => count + 1, 0);
  const [type, text] = [query.get("type") ?? "", query.get("text") ?? ""];
  const timeline = useMemo(
    () => new Timeline(predicateOf(parseFilter(new URLSearchParams({ type, text })))),
    // The array of a run only grows; another run has another array.
    [events, type, text],
  );
  useLayoutEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const addSlice = () => {
      const end = performance.now() + sliceMs;
      const before = timeline.rows.length;
      const isDone = timeline.extend(events, () => performance.now() > end);
      if (!isDone) timer = setTimeout(addSlice);
      if (!isDone || timeline.rows.length !== before) rerender();
    };
    addSlice();
    return () => clearTimeout(timer);
  }, [timeline, events, version]);
  return timeline;
}
