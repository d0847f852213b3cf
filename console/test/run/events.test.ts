import type { RunwireEvent } from "@runwire/client";
import { describe, expect, test } from "vitest";
import { shellCommand, shellQuote } from "../../src/run/events/shellCommand";
import { formatOffset } from "../../src/run/events/EventRow";
import { familyOf, summaryOf } from "../../src/run/events/eventFamily";
import { parseFilter, predicateOf, toggleType } from "../../src/run/events/filter";
import { gapHeight, rowAt, rowHeight, Timeline } from "../../src/run/events/timeline";

function event(seq: number, seconds: number, type: string, more: Record<string, unknown> = {}): RunwireEvent {
  return { seq, at: new Date(1_700_000_000_000 + seconds * 1000).toISOString(), thread_id: "t", run_id: "r", type, ...more } as unknown as RunwireEvent;
}

const some = [
  event(1, 0, "run.started", { message: "Hello" }),
  event(2, 0.2, "text.delta", { message_id: "m", content: "Weather \"today\"" }),
  event(3, 12.6, "tool.called", { call_id: "c", name: "forecast", arguments: { city: "Lisbon" } }),
  event(4, 12.7, "tool.finished", { call_id: "c", status: "success" }),
  event(5, 60, "run.completed"),
];

describe("the timeline", () => {
  test("has a gap row for a period without events", () => {
    const timeline = new Timeline(undefined);
    expect(timeline.extend(some)).toBe(true);
    expect(timeline.rows).toEqual([0, 1, ~2, 2, 3, ~4, 4]);
    expect(timeline.tops.at(-1)).toBe(5 * rowHeight + 2 * gapHeight);
  });

  test("measures gaps between matching events", () => {
    const timeline = new Timeline(predicateOf({ types: new Set(["run"]), text: "" }));
    timeline.extend(some);
    expect(timeline.rows).toEqual([0, ~4, 4]);
    expect(timeline.matchCount).toBe(2);
    expect(timeline.counts.get("tool.called")).toBe(1);
  });

  test("matches each event once while it grows", () => {
    let looked = 0;
    const timeline = new Timeline(() => (looked++, true));
    const growing = some.slice(0, 2);
    timeline.extend(growing);
    growing.push(...some.slice(2));
    timeline.extend(growing);
    timeline.extend(growing);
    expect(looked).toBe(some.length);
  });

  test("stops when it should, and continues from there", () => {
    const many = Array.from({ length: 1000 }, (_, place) => event(place + 1, 0, "text.delta"));
    const timeline = new Timeline(undefined);
    expect(timeline.extend(many, () => true)).toBe(false);
    expect(timeline.matchCount).toBeLessThan(100);
    while (!timeline.extend(many, () => true));
    expect(timeline.rows).toEqual(many.map((_, place) => place));
  });

  test("finds rows by event, by direction and by height", () => {
    const timeline = new Timeline(undefined);
    timeline.extend(some);
    expect(some.map((_, index) => timeline.rows[timeline.rowOf(index)])).toEqual([0, 1, 2, 3, 4]);
    expect(timeline.rowOf(99)).toBe(-1);
    expect(timeline.nextEventRow(2, 1)).toBe(3);
    expect(timeline.nextEventRow(2, -1)).toBe(1);
    expect(timeline.nextEventRow(7, 1)).toBe(-1);
    expect(rowAt(timeline.tops, 0)).toBe(0);
    expect(rowAt(timeline.tops, 2 * rowHeight)).toBe(2);
    expect(rowAt(timeline.tops, 2 * rowHeight + gapHeight)).toBe(3);
    expect(rowAt([0], 500)).toBe(0);
  });
});

describe("the filter", () => {
  const matching = (query: string) => {
    const matches = predicateOf(parseFilter(new URLSearchParams(query)));
    return some.filter((each) => matches?.(each) ?? true).map((each) => each.seq);
  };

  test("matches families and types", () => {
    expect(matching("type=tool")).toEqual([3, 4]);
    expect(matching("type=tool.finished,text")).toEqual([2, 4]);
  });

  test("matches words anywhere in an event, ignoring case", () => {
    expect(matching("text=LISBON")).toEqual([3]);
    expect(matching("text=tool%20success")).toEqual([4]);
    expect(matching("text=%22today%22")).toEqual([2]);
    expect(matching("text=nowhere")).toEqual([]);
  });

  test("matches everything if it is empty", () => {
    expect(predicateOf(parseFilter(new URLSearchParams("type=&text=%20")))).toBeUndefined();
  });

  test("toggles types", () => {
    expect(toggleType(new Set(["tool"]), "text")).toBe("tool,text");
    expect(toggleType(new Set(["tool", "text"]), "tool")).toBe("text");
  });
});

describe("the row of an event", () => {
  test("has a family for every type, including unknown ones", () => {
    expect(["run.started", "got.planned", "checkpoint", "metrics", "brand.new", "constructor"].map(familyOf)).toEqual(["run", "thought", "state", "usage", "other", "other"]);
  });

  test("summarizes the event without its envelope", () => {
    expect(summaryOf(some[2] as RunwireEvent)).toBe('forecast · arguments {"city":"Lisbon"}');
    expect(summaryOf(event(1, 0, "text.delta", { content: "a\nb" }))).toBe("a⏎b");
    expect(summaryOf(event(1, 0, "text.delta", { content: "x".repeat(9999) })).length).toBeLessThan(300);
  });

  test("formats the offset since the start", () => {
    expect([0, 4218, 187_500, 3_723_000, -5].map(formatOffset)).toEqual(["+0.000", "+4.218", "+3:07.5", "+1:02:03", "−0.005"]);
  });
});

describe("the shell command", () => {
  const request = { origin: "http://127.0.0.1:7420", run: "it's a run/1", dialect: "ag-ui" } as const;

  test("reads the shown stream from its cursor", () => {
    expect(shellCommand({ ...request, framing: "ndjson", after: "12-1" })).toBe(
      "curl -N -H 'Accept: application/x-ndjson' 'http://127.0.0.1:7420/v1/runs/it'\\''s%20a%20run%2F1/events?dialect=ag-ui&after=12-1'",
    );
  });

  test("subscribes on a WebSocket", () => {
    expect(shellCommand({ ...request, run: "r", framing: "websocket" })).toBe(
      `printf '%s\\n' '{"op":"subscribe","id":"1","run":"r","dialect":"ag-ui"}' | websocat -n ws://127.0.0.1:7420/v1/ws`,
    );
  });

  test("quotes special characters", () => {
    expect(["plain-1.2", "", "a b", "$(rm)", "it's", "`x`", "a\nb"].map(shellQuote)).toEqual(["plain-1.2", "''", "'a b'", "'$(rm)'", "'it'\\''s'", "'`x`'", "'a\nb'"]);
  });
});
