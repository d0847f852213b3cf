import type { Part, RunStep } from "@runwire/client";
import { describe, expect, test } from "vitest";
import { countByKind, differences, formatPath } from "../../src/run/state/diff";
import { axisOf, spansOf, aggregateSteps, aggregateTools, waitingTime } from "../../src/run/usage/spans";

describe("differences", () => {
  const diff = (before: unknown, after: unknown) => differences(before, after).map(({ kind, path }) => `${kind} ${formatPath(path)}`);

  test("are listed by path: added, removed or changed", () => {
    expect(diff({ a: 1, b: { c: [1, 2] }, gone: true }, { a: 2, b: { c: [1, 2], d: null } })).toEqual(["changed a", "added b.d", "removed gone"]);
  });

  test("of a list with an insertion are one, not one per moved item", () => {
    expect(diff([1, 2, 3], [1, 9, 2, 3])).toEqual(["added [1]"]);
    expect(diff([{ id: 1 }, { id: 2 }], [{ id: 2 }])).toEqual(["removed [0]"]);
    expect(diff([1, 2], [1, 3])).toEqual(["changed [1]"]);
  });

  test("of equal values are empty, whatever the order of the keys", () => {
    expect(diff({ a: [1, { b: null }], c: "x" }, { c: "x", a: [1, { b: null }] })).toEqual([]);
  });

  test("of different types replace the whole value", () => {
    expect(diff([], {})).toEqual(["changed "]);
    expect(diff(undefined, { a: 1 })).toEqual(["added "]);
    expect(diff(null, 0)).toEqual(["changed "]);
  });

  test("handle names of the object prototype", () => {
    expect(diff({}, JSON.parse('{"constructor":1,"__proto__":2}'))).toEqual(["added constructor", "added __proto__"]);
  });

  test("are limited and counted", () => {
    const many = Object.fromEntries(Array.from({ length: 9999 }, (_, n) => [`k${n}`, n]));
    expect(countByKind(differences({}, many))).toEqual({ added: 500, removed: 0, changed: 0 });
  });

  test("format paths as in code", () => {
    expect(formatPath(["plan", "days", "2", "a b", "城市"])).toBe('plan.days[2]["a b"].城市');
  });
});

describe("usage", () => {
  const step = (stepId: string, startedAt: number, endedAt?: number): RunStep => ({ stepId, name: stepId.split(".")[0] ?? "", status: "completed", startedAt, ...(endedAt !== undefined && { endedAt }) });
  const tool = (name: string, startedAt: number, endedAt: number, more: Partial<Part> = {}) => ({ kind: "tool", id: `${name} ${startedAt}`, callId: name, name, status: "success", startedAt, endedAt, ...more }) as Part;
  const steps = [step("outer.1", 0, 100), step("inner.1", 10, 50), step("inner.2", 50, 90), step("last.1", 100)];
  const call = (stepId: string, totalTokens: number) => ({ at: 0, promptTokens: totalTokens - 1, completionTokens: 1, totalTokens, stepId, step: stepId.split(".")[0] ?? "" });
  const usage = { promptTokens: 0, completionTokens: 0, totalTokens: 0, calls: [call("inner.1", 10), call("inner.2", 5)] };

  test("nests steps and operations", () => {
    const spans = spansOf({ steps, parts: [tool("look", 50, 60, { stepId: "inner.2" }), tool("alone", 120, 130)], usage });
    expect(spans.map((span) => [span.name, span.depth, span.tokens])).toEqual([
      ["outer", 0, undefined],
      ["inner", 1, 10],
      ["inner", 1, 5],
      ["look", 2, undefined],
      ["last", 0, undefined],
      ["alone", 0, undefined],
    ]);
  });

  test("does not nest parallel steps", () => {
    expect(spansOf({ steps: [step("a", 0, 50), step("b", 10, 80)], parts: [] }).map((span) => span.depth)).toEqual([0, 0]);
  });

  test("aggregates time and tokens by step and tool", () => {
    const inner = aggregateSteps({ steps, parts: [], usage }, 200).find((sum) => sum.name === "inner");
    expect(inner).toMatchObject({ count: 2, duration: 80, longest: 40, totalTokens: 15 });
    const parts = [tool("look", 0, 30), tool("look", 40, 50, { status: "failure" } as Partial<Part>), tool("fetch", 0, 90, { durationMs: 70 } as Partial<Part>)];
    expect(aggregateTools({ steps: [], parts }, 200).map((sum) => [sum.name, sum.count, sum.failures, sum.duration])).toEqual([
      ["fetch", 1, 0, 70],
      ["look", 2, 1, 40],
    ]);
  });

  test("counts overlapping interactions once", () => {
    const question = (startedAt: number, endedAt?: number) => ({ kind: "interaction", id: String(startedAt), startedAt, ...(endedAt !== undefined && { endedAt }) }) as Part;
    expect(waitingTime({ parts: [question(0, 50), question(10, 30), question(40, 70), question(90)] }, 100)).toBe(80);
  });

  test("compresses long waiting, and keeps the rest in proportion", () => {
    const wait = { kind: "interaction", id: "q", startedAt: 100, endedAt: 100_100 } as Part;
    const axis = axisOf({ parts: [wait] }, 0, 100_200);
    expect(axis.isCompressed).toBe(true);
    expect(axis.at(100)).toBeCloseTo(100 - axis.at(100_100));
    expect(axis.at(100_100) - axis.at(100)).toBeLessThan(20);
    expect([axis.at(0), axis.at(100_200), axis.at(-5)]).toEqual([0, 100, 0]);
    expect(axisOf({ parts: [] }, 0, 200).at(50)).toBe(25);
  });
});
