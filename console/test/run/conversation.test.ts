import { RunView, type Part, type RunwireEvent } from "@runwire/client";
import { describe, expect, it } from "vitest";
import { Chunker, rowsOf, maxParallel } from "../../src/run/conversation/chunks";
import { operationText } from "../../src/run/operation";
import { dictionaries } from "../../src/text";

function viewOf(...events: Record<string, unknown>[]) {
  const view = new RunView("r");
  for (const [index, event] of events.entries()) {
    const at = new Date(Date.UTC(2026, 10, 15, 2, 0, index)).toISOString();
    view.apply({ seq: index + 1, at, thread_id: "t", run_id: "r", ...event } as unknown as RunwireEvent);
  }
  return view.snapshot();
}

const textOf = (...events: Record<string, unknown>[]) => operationText(viewOf({ type: "run.started" }, ...events), dictionaries.en);

describe("the text of the current operation", () => {
  it("names the tool and the step", () => {
    const call = { type: "tool.called", call_id: "c", name: "search", arguments: {}, step_id: "s" };
    const step = { type: "step.started", name: "gather", step_id: "s" };
    expect(textOf(step)).toMatchObject({ text: "Working on gather", isOver: false });
    expect(textOf(step, call)).toMatchObject({ text: "Calling search", step: "gather" });
    expect(textOf(step, call, { ...call, call_id: "d", name: "fetch" }).text).toBe("Calling fetch and 1 more");
  });

  it("is thinking, writing or working", () => {
    expect(textOf().text).toBe("Starting");
    expect(textOf({ type: "thinking.started", message_id: "m" }).text).toBe("Thinking");
    expect(textOf({ type: "text.started", message_id: "m" }).text).toBe("Writing");
    expect(textOf({ type: "text.started", message_id: "m" }, { type: "text.finished", message_id: "m" }).text).toBe("Working");
  });

  it("names the interaction, with its start time", () => {
    const asked = textOf({ type: "interaction.requested", interaction_id: "i", kind: "form", title: "Where to?" }, { type: "run.suspended", interaction_ids: ["i"] });
    expect(asked).toMatchObject({ text: "Waiting for a person: Where to?", at: Date.UTC(2026, 10, 15, 2, 0, 2) });
  });

  it("shows a cancellation request", () => {
    expect(textOf({ type: "run.cancel_requested" }).text).toBe("Stopping");
    expect(textOf({ type: "run.cancel_requested", by: "Lin" }).text).toBe("Stopping, requested by Lin");
  });

  it("shows how and when the run ended", () => {
    expect(textOf({ type: "run.completed" })).toMatchObject({ text: "Completed", isOver: true, at: Date.UTC(2026, 10, 15, 2, 0, 1) });
    expect(textOf({ type: "run.failed", error: { message: "no network" } }).text).toBe("Failed: no network");
    expect(textOf({ type: "run.cancelled", reason: "enough" }).text).toBe("Cancelled: enough");
  });

  it("an empty run has not started", () => {
    expect(operationText(viewOf(), dictionaries.zh).text).toBe("未开始");
  });
});

describe("the parts of a conversation", () => {
  const part = (id: number, kind: Part["kind"] = "custom", more: object = {}) => ({ kind, id: String(id), startedAt: id, value: id, ...more }) as unknown as Part;

  it("a delta changes one chunk", () => {
    const chunker = new Chunker();
    const parts = Array.from({ length: 100 }, (_, id) => part(id));
    const before = chunker.chunksOf(parts);
    const next = [...parts.slice(0, 99), part(99)];
    const after = chunker.chunksOf(next);
    expect(after.flatMap((chunk) => chunk.parts)).toEqual(next);
    expect(after.filter((chunk, index) => chunk !== before[index])).toHaveLength(1);
    expect(chunker.chunksOf(next)).toBe(after);
  });

  it("the boundaries of chunks never change as parts are added", () => {
    const chunker = new Chunker();
    const starts: number[][] = [];
    for (let count = 1; count <= 150; count++) {
      const parts = Array.from({ length: count }, (_, id) => part(id, id % 30 < 25 ? "tool" : "custom"));
      starts.push(chunker.chunksOf(parts).map((chunk) => chunk.start));
    }
    for (const [index, cut] of starts.entries()) expect(starts.at(-1)?.slice(0, cut.length), String(index)).toEqual(cut);
  });

  it("calls of a step are grouped, and a notice that repeats an error is omitted", () => {
    const failed = part(2, "tool", { stepId: "s", error: { message: "no answer" } });
    const rows = rowsOf([part(1, "tool", { stepId: "s" }), failed, part(3, "notice", { message: "no answer" }), part(4, "notice", { message: "other" }), part(5, "tool", { stepId: "s" })]);
    expect(rows.map((row) => (row.kind === "calls" ? row.calls.length : row.part.id))).toEqual([2, "4", 1]);
  });

  it("parallel calls are counted", () => {
    expect(maxParallel([{ startedAt: 0, endedAt: 5 }, { startedAt: 5, endedAt: 9 }])).toBe(1);
    expect(maxParallel([{ startedAt: 0 }, { startedAt: 5, endedAt: 9 }, { startedAt: 6 }])).toBe(3);
  });
});
