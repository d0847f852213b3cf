import { describe, expect, test } from "vitest";
import { applyPatch, type Part, RunView, type RunwireEvent } from "../src/index.js";

let seq = 0;

/** Creates an event one second after the previous one. */
function event(given: { type: string; [field: string]: unknown }): RunwireEvent {
  seq++;
  return { seq, at: new Date(seq * 1000).toISOString(), thread_id: "t", run_id: "r", ...given } as unknown as RunwireEvent;
}

function viewOf(...events: { type: string; [field: string]: unknown }[]): RunView {
  seq = 0;
  const view = new RunView("r");
  for (const each of events) view.apply(event(each));
  return view;
}

function partOf<K extends Part["kind"]>(view: RunView, kind: K): Extract<Part, { kind: K }> {
  const part = view.snapshot().parts.find((each) => each.kind === kind);
  if (part === undefined) throw new Error(`there is no ${kind}`);
  return part as Extract<Part, { kind: K }>;
}

describe("parts", () => {
  test("a text grows, and earlier snapshots do not change", () => {
    const view = viewOf({ type: "run.started", message: "hi" }, { type: "text.started", message_id: "m" }, { type: "text.delta", message_id: "m", content: "Hel" });
    const before = view.snapshot();
    expect(view.snapshot()).toBe(before);
    view.apply(event({ type: "text.delta", message_id: "m", content: "lo" }));
    const after = view.snapshot();
    expect(before.parts.map((part) => ("text" in part ? part.text : ""))).toEqual(["hi", "Hel"]);
    expect(after.parts.map((part) => ("text" in part ? part.text : ""))).toEqual(["hi", "Hello"]);
    expect(after.parts[0]).toBe(before.parts[0]);
    expect(after.steps).toBe(before.steps);
    expect(after.thoughts).toBe(before.thoughts);
    expect(after.parts[1]).toMatchObject({ kind: "text", startedAt: 2000 });
    expect(after.parts[1]?.endedAt).toBeUndefined();
  });

  test("a tool call is tracked from its first argument to its result", () => {
    const view = viewOf({ type: "tool.args_started", call_id: "c", name: "look" }, { type: "tool.args_delta", call_id: "c", delta: '{"a":' });
    expect(partOf(view, "tool")).toMatchObject({ status: "preparing", argumentsText: '{"a":' });
    view.apply(event({ type: "tool.called", call_id: "c", name: "look", arguments: { a: 1 }, description: "看" }));
    expect(partOf(view, "tool").argumentsText).toBeUndefined();
    view.apply(event({ type: "tool.progress", call_id: "c", progress: 40, message: "half" }));
    view.apply(event({ type: "tool.output", call_id: "c", content: "a\n" }));
    view.apply(event({ type: "tool.output", call_id: "c", content: "b\n" }));
    view.apply(event({ type: "tool.finished", call_id: "c", status: "success", result: [1], duration_ms: 12 }));
    expect(partOf(view, "tool")).toEqual({
      kind: "tool",
      id: "call c",
      startedAt: 1000,
      endedAt: 7000,
      callId: "c",
      name: "look",
      description: "看",
      status: "success",
      arguments: { a: 1 },
      progress: 40,
      progressMessage: "half",
      output: "a\nb\n",
      result: [1],
      durationMs: 12,
    });
    expect(view.snapshot().counts).toMatchObject({ events: 7, toolCalls: 1 });
  });

  test("an interaction is open until it is resolved, and the run waits meanwhile", () => {
    const view = viewOf({ type: "run.started" }, { type: "interaction.requested", interaction_id: "q", kind: "form", title: "Where to?" }, { type: "run.suspended", interaction_ids: ["q"] });
    expect(view.snapshot()).toMatchObject({ status: "suspended", operation: { kind: "waiting", name: "Where to?", since: 3000 } });
    view.apply(event({ type: "interaction.resolved", interaction_id: "q", decision: "submitted", values: { city: "北京" }, by: "li" }));
    view.apply(event({ type: "run.resumed", interaction_ids: ["q"] }));
    expect(partOf(view, "interaction")).toMatchObject({ status: "submitted", endedAt: 4000, answer: { decision: "submitted", values: { city: "北京" }, by: "li" } });
    expect(view.snapshot().status).toBe("running");
  });

  test("a notice with the message of the final error is marked as repeated", () => {
    const view = viewOf({ type: "notice", level: "error", message: "no", fatal: true }, { type: "run.failed", error: { message: "no", code: "E" } });
    expect(partOf(view, "notice").isRepeated).toBe(true);
    expect(partOf(view, "error").error.code).toBe("E");
    expect(view.snapshot()).toMatchObject({ status: "failed", endedAt: 2000, operation: { kind: "idle" } });
  });

  test("a reply becomes a text only if the run has none", () => {
    expect(partOf(viewOf({ type: "run.completed", reply: "yes" }), "text").text).toBe("yes");
    const view = viewOf({ type: "text.started", message_id: "m" }, { type: "text.delta", message_id: "m", content: "yes" }, { type: "run.completed", reply: "yes" });
    expect(view.snapshot().parts).toHaveLength(1);
  });

  test("unknown events become custom parts, and events of other runs are ignored", () => {
    const view = viewOf({ type: "future.thing", x: 1 }, { type: "run.status", state: "running", run_id: "another" });
    expect(partOf(view, "custom")).toMatchObject({ name: "future.thing", value: { x: 1 } });
    expect(view.snapshot().counts.events).toBe(1);
  });

  test("an activity is updated by patches", () => {
    const view = viewOf({ type: "activity.snapshot", message_id: "a", activity_type: "PLAN", content: { steps: ["one"] } });
    view.apply(event({ type: "activity.patched", message_id: "a", activity_type: "PLAN", patch: [{ op: "add", path: "/steps/-", value: "two" }] }));
    expect(partOf(view, "activity").content).toEqual({ steps: ["one", "two"] });
  });
});

describe("the current operation", () => {
  test("is the newest open one, with its step", () => {
    const view = viewOf({ type: "run.started" });
    const operation = (): unknown => view.snapshot().operation;
    expect(operation()).toEqual({ kind: "starting", since: 1000 });
    view.apply(event({ type: "step.started", name: "gather", step_id: "g" }));
    expect(operation()).toEqual({ kind: "step", name: "gather", since: 2000 });
    view.apply(event({ type: "tool.called", call_id: "a", name: "look", arguments: {} }));
    view.apply(event({ type: "tool.called", call_id: "b", name: "find", arguments: {} }));
    expect(operation()).toEqual({ kind: "tool", name: "find", since: 4000, step: "gather", parallel: 1 });
    view.apply(event({ type: "tool.finished", call_id: "b", status: "success" }));
    expect(operation()).toEqual({ kind: "tool", name: "look", since: 3000, step: "gather" });
    view.apply(event({ type: "tool.finished", call_id: "a", status: "success" }));
    view.apply(event({ type: "step.finished", name: "gather", step_id: "g" }));
    expect(operation()).toMatchObject({ kind: "idle" });
    view.apply(event({ type: "thinking.started", message_id: "x" }));
    expect(operation()).toMatchObject({ kind: "thinking", since: 8000 });
    view.apply(event({ type: "run.completed" }));
    expect(operation()).toEqual({ kind: "idle", since: 9000 });
  });
});

test("a running graph node is reported with its enclosing step", () => {
  const view = viewOf({ type: "step.started", name: "execute", step_id: "e" }, { type: "got.node_started", node_id: "a" }, { type: "got.node_started", node_id: "b" });
  expect(view.snapshot().operation).toEqual({ kind: "step", name: "b", since: 3000, step: "execute", parallel: 1 });
});

describe("tokens, state and thoughts", () => {
  test("tokens are summed with their steps; the summary counts only if no call reported tokens", () => {
    const view = viewOf(
      { type: "step.started", name: "plan", step_id: "p" },
      { type: "usage", prompt_tokens: 10, completion_tokens: 2, step_id: "p" },
      { type: "usage", total_tokens: 5 },
      { type: "run.completed", summary: { total_tokens: 99 } },
    );
    expect(view.snapshot().usage).toMatchObject({ promptTokens: 10, completionTokens: 2, totalTokens: 17, calls: [{ step: "plan", stepId: "p", totalTokens: 12 }, { totalTokens: 5 }] });
    expect(viewOf({ type: "run.completed", summary: { total_tokens: 99 } }).snapshot().usage).toMatchObject({ totalTokens: 99, calls: [] });
  });

  test("all states are kept, and unchanged values are shared", () => {
    const view = viewOf({ type: "state.snapshot", state: { a: { b: 1 }, c: [1] } }, { type: "state.patched", patch: [{ op: "replace", path: "/a/b", value: 2 }] });
    const { state, states } = view.snapshot();
    expect(state).toEqual({ a: { b: 2 }, c: [1] });
    expect(states[0]?.state).toEqual({ a: { b: 1 }, c: [1] });
    expect((state as { c: unknown }).c).toBe((states[0]?.state as { c: unknown }).c);
  });

  test("a tree of thoughts has its path, scores and abandoned nodes", () => {
    const view = viewOf(
      { type: "tot.expanded", candidates: ["a", "b"] },
      { type: "tot.evaluated", chosen: 1, scores: [0.2, 0.7] },
      { type: "tot.expanded", candidates: ["b1"] },
      { type: "tot.evaluated", chosen: 0, scores: [0.1] },
      { type: "tot.backtracked", to_depth: 0, reason: "no way" },
      { type: "tot.expanded", candidates: ["b", "a", "c"] },
      { type: "tot.evaluated", chosen: 1, scores: [0.1, 0.9, 0.3] },
    );
    const tree = view.snapshot().thoughts.tot;
    expect(tree?.nodes.map(({ id, text, depth, score, status }) => [id, text, depth, score, status])).toEqual([
      ["0", "", 0, undefined, "chosen"],
      ["0.1", "a", 1, 0.9, "chosen"],
      ["0.2", "b", 1, 0.1, "abandoned"],
      ["0.2.1", "b1", 2, 0.1, "abandoned"],
      ["0.3", "c", 1, 0.3, "candidate"],
    ]);
    expect(tree?.path).toEqual(["0", "0.1"]);
    expect(tree?.backtracks).toEqual([{ at: 5000, from: "0.2.1", to: "0", reason: "no way" }]);
  });

  test("a graph of thoughts marks inferred edges", () => {
    const view = viewOf(
      { type: "got.planned", node_count: 3, edge_count: 2, node_ids: ["x", "y", "z"] },
      { type: "got.node_started", node_id: "x" },
      { type: "got.node_started", node_id: "y" },
      { type: "got.node_completed", node_id: "x", result_summary: "fine" },
      { type: "got.node_failed", node_id: "y", error: "no" },
      { type: "got.expanded", node_id: "y", nodes_added: 1, edges_added: [["y.2", "z"]] },
      { type: "got.node_started", node_id: "y.2" },
      { type: "got.node_completed", node_id: "y.2" },
      { type: "got.node_started", node_id: "z" },
    );
    const graph = view.snapshot().thoughts.got;
    expect(graph?.nodes.map(({ id, status, addedBy }) => [id, status, addedBy])).toEqual([
      ["x", "completed", undefined],
      ["y", "failed", undefined],
      ["z", "running", undefined],
      ["y.2", "completed", "y"],
    ]);
    expect(graph?.edges).toEqual([
      { from: "y.2", to: "z", isInferred: false },
      { from: "y", to: "y.2", isInferred: true },
    ]);
    expect(graph).toMatchObject({ nodeCount: 4, edgeCount: 3 });
  });
});

test("nodes that start in parallel depend on the same nodes", () => {
  const started = (...ids: string[]): { type: string; node_id: string }[] => ids.map((node_id) => ({ type: "got.node_started", node_id }));
  const done = (...ids: string[]): { type: string; node_id: string }[] => ids.map((node_id) => ({ type: "got.node_completed", node_id }));
  const view = viewOf(...started("a"), ...done("a"), ...started("b", "c"), ...done("c", "b"), ...started("d"));
  expect(view.snapshot().thoughts.got?.edges.map(({ from, to }) => `${from}${to}`)).toEqual(["ab", "ac", "bd", "cd"]);
});

describe("a patch", () => {
  test.each([
    [{ a: 1 }, [{ op: "add", path: "/b", value: [1] }], { a: 1, b: [1] }],
    [{ a: [1, 3] }, [{ op: "add", path: "/a/1", value: 2 }], { a: [1, 2, 3] }],
    [{ a: 1, b: 2 }, [{ op: "remove", path: "/a" }], { b: 2 }],
    [{ a: { b: 1 }, c: {} }, [{ op: "move", from: "/a/b", path: "/c/d" }], { a: {}, c: { d: 1 } }],
    [{ a: 1 }, [{ op: "copy", from: "/a", path: "/b" }], { a: 1, b: 1 }],
    [{ "a/b": 1 }, [{ op: "replace", path: "/a~1b", value: 2 }], { "a/b": 2 }],
    [{ a: [{ b: 1 }] }, [{ op: "test", path: "/a", value: [{ b: 1 }] }, { op: "replace", path: "", value: [] }], []],
  ])("of %j by %j is applied as RFC 6902 defines", (document, patch, expected) => {
    expect(applyPatch(document, patch)).toEqual(expected);
  });

  test("skips operations that RFC 6902 does not define, and applies the others", () => {
    const patch = [{ op: "add", path: "/b", value: 1 }, { op: "odd", path: "/a" }, { op: "increment" }, { op: "remove", path: "/a" }];
    expect(applyPatch({ a: [1] }, patch)).toEqual({ b: 1 });
  });

  test.each([
    [[{ op: "remove", path: "/x" }]],
    [[{ op: "add", path: "/x/y", value: 1 }]],
    [[{ op: "add", path: "/a/01", value: 1 }]],
    [[{ op: "add", path: "/b", value: 1 }, { op: "test", path: "/a", value: 1 }]],
    [[{ op: "move", from: "/a", path: "/a/0" }]],
    [[{ path: "/a" }]],
    [[{ op: 1, path: "/a" }]],
    [[{ op: "replace", path: "/__proto__/x", value: 1 }]],
    [{ op: "remove", path: "/a" }],
    [[null]],
    [Array.from({ length: 60 }, (_, n) => ({ op: "copy", from: "", path: `/b${n}` }))],
  ])("%j that cannot be applied changes nothing", (patch) => {
    const document = { a: [1] };
    expect(applyPatch(document, patch)).toBe(document);
    expect(({} as { x?: number }).x).toBeUndefined();
  });
});
