import { expect, test } from "vitest";
import { RunView } from "../src/index.js";
import type { RunwireEvent } from "../src/index.js";

let seq = 0;
function viewOf(...events: Record<string, unknown>[]) {
  seq = 0;
  const view = new RunView("r");
  for (const event of events) {
    seq++;
    const at = new Date(1_700_000_000_000 + seq * 1000).toISOString();
    view.apply({ seq, at, thread_id: "t", run_id: "r", ...event } as unknown as RunwireEvent);
  }
  return view.snapshot();
}

test("a thought keeps its visit number when it is visited again", () => {
  const { tot } = viewOf(
    { type: "tot.expanded", candidates: ["left", "right"] },
    { type: "tot.evaluated", chosen: 0, scores: [0.9, 0.4] },
    { type: "tot.expanded", candidates: ["deeper"] },
    { type: "tot.evaluated", chosen: 0, scores: [0.1] },
    { type: "tot.backtracked", reason: "dead end", to_depth: 0 },
    { type: "tot.expanded", candidates: ["left", "right"] },
    { type: "tot.evaluated", chosen: 1, scores: [0.2, 0.8] },
  ).thoughts;
  const nodes = tot?.nodes.map((node) => [node.text, node.status, node.visit]);
  expect(nodes).toEqual([
    ["", "chosen", undefined],
    ["left", "abandoned", 1],
    ["right", "chosen", 3],
    ["deeper", "abandoned", 2],
  ]);
  expect(tot?.path).toEqual(["0", "0.2"]);
});

test("cached tokens are counted only for calls that report them", () => {
  const { usage } = viewOf(
    { type: "usage", prompt_tokens: 100, completion_tokens: 10, total_tokens: 110, extra: { prompt_tokens_details: { cached_tokens: 64 } } },
    { type: "usage", prompt_tokens: 50, completion_tokens: 5, total_tokens: 55 },
  );
  expect(usage).toMatchObject({ promptTokens: 150, totalTokens: 165, cachedTokens: 64 });
  expect(usage?.calls.map((call) => call.cachedTokens)).toEqual([64, undefined]);
});
