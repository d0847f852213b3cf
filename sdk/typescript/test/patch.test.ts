import { expect, test } from "vitest";

import { applyPatch } from "../src/fold/patch.js";

/** Makes an object that counts how often its members are listed. */
function counted(members: Record<string, unknown>): { value: Record<string, unknown>; visits: () => number } {
  let visits = 0;
  const value = new Proxy(members, {
    ownKeys(target) {
      visits += 1;
      return Reflect.ownKeys(target);
    },
  });
  return { value, visits: () => visits };
}

test("a patch visits what it changes, and not the whole state", () => {
  const parts = Array.from({ length: 1000 }, (_, at) => counted({ text: `part ${String(at)}` }));
  const visits = () => parts.reduce((sum, part) => sum + part.visits(), 0);
  let state: unknown = { parts: parts.map((part) => part.value), progress: 0 };
  state = applyPatch(state, [{ op: "replace", path: "/progress", value: 1 }]);
  const once = visits();
  for (let progress = 2; progress <= 100; progress += 1) {
    state = applyPatch(state, [{ op: "replace", path: "/progress", value: progress }]);
  }
  expect(state).toMatchObject({ progress: 100 });
  expect(once).toBeLessThanOrEqual(parts.length);
  expect(visits()).toBe(once);
});

test("a document that copies itself stays within the limits", () => {
  let state: unknown = { a: [1, 2, 3] };
  for (let times = 0; times < 64; times += 1) {
    state = applyPatch(state, [{ op: "copy", from: "/a", path: "/a/-" }]);
  }
  const before = state;
  expect(applyPatch(state, [{ op: "copy", from: "/a", path: "/a/-" }])).toBe(before);
});

test("a document that becomes too deep is left as it was", () => {
  let deep: unknown = {};
  for (let level = 0; level < 127; level += 1) deep = { deep };
  const state = { value: null };
  const patched = applyPatch(state, [{ op: "replace", path: "/value", value: deep }]);
  expect(patched).not.toBe(state);
  expect(applyPatch(state, [{ op: "replace", path: "/value", value: { deep } }])).toBe(state);
  // Also where it was measured on its own before, and then moves down.
  expect(applyPatch({ value: patched }, [{ op: "add", path: "/more", value: 1 }])).toEqual({ value: patched });
});
