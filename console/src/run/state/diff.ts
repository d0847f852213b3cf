/** A difference between two JSON values. */
export interface Difference {
  kind: "added" | "removed" | "changed";
  /** Property names and indexes from the root; empty for the root. */
  path: readonly string[];
  before?: unknown;
  after?: unknown;
}

/** Maximum number of differences that are listed. */
export const maxDifferences = 500;

/** Returns up to `limit` differences of two JSON values, in the order of the newer one. */
export function differences(before: unknown, after: unknown, limit = maxDifferences): Difference[] {
  const found: Difference[] = [];
  compare(before, after, [], (difference) => {
    found.push(difference);
    return found.length < limit;
  });
  return found;
}

/** Returns the number of differences of each kind. */
export function countByKind(found: readonly Difference[]): Record<Difference["kind"], number> {
  const counts = { added: 0, removed: 0, changed: 0 };
  for (const { kind } of found) counts[kind]++;
  return counts;
}

/** Formats a path as in code: `plan.days[2].title`. */
export function formatPath(path: readonly string[]): string {
  let text = "";
  for (const step of path) {
    if (/^\d+$/.test(step)) text += `[${step}]`;
    else if (/^[\p{L}_$][\p{L}\p{N}_$-]*$/u.test(step)) text += text === "" ? step : `.${step}`;
    else text += `[${JSON.stringify(step)}]`;
  }
  return text;
}

/** Receives a difference; returns false to stop. */
type OnDifference = (difference: Difference) => boolean;

function compare(before: unknown, after: unknown, path: readonly string[], onDifference: OnDifference): boolean {
  if (before === after) return true;
  if (before === undefined) return onDifference({ kind: "added", path, after });
  if (after === undefined) return onDifference({ kind: "removed", path, before });
  if (Array.isArray(before) && Array.isArray(after)) return compareLists(before, after, path, onDifference);
  if (isObject(before) && isObject(after)) {
    for (const name of Object.keys(after)) {
      const old = Object.hasOwn(before, name) ? before[name] : undefined;
      if (!compare(old, after[name], [...path, name], onDifference)) return false;
    }
    for (const name of Object.keys(before)) {
      if (!Object.hasOwn(after, name) && !onDifference({ kind: "removed", path: [...path, name], before: before[name] })) return false;
    }
    return true;
  }
  // NaN equals NaN here.
  if (Object.is(before, after)) return true;
  return onDifference({ kind: "changed", path, before, after });
}

/** Compares lists after their common prefix and suffix, so that an insertion is one difference. */
function compareLists(before: readonly unknown[], after: readonly unknown[], path: readonly string[], onDifference: OnDifference): boolean {
  const shorter = Math.min(before.length, after.length);
  let start = 0;
  while (start < shorter && isEqual(before[start], after[start])) start++;
  let end = 0;
  while (end < shorter - start && isEqual(before[before.length - 1 - end], after[after.length - 1 - end])) end++;
  const [oldEnd, newEnd] = [before.length - end, after.length - end];
  for (let index = start; index < Math.max(oldEnd, newEnd); index++) {
    const itemPath = [...path, String(index)];
    if (index >= oldEnd) {
      if (!onDifference({ kind: "added", path: itemPath, after: after[index] })) return false;
    } else if (index >= newEnd) {
      if (!onDifference({ kind: "removed", path: itemPath, before: before[index] })) return false;
    } else if (!compare(before[index], after[index], itemPath, onDifference)) return false;
  }
  return true;
}

function isEqual(one: unknown, other: unknown): boolean {
  return compare(one, other, [], () => false);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
