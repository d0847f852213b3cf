/** One difference between two values. */
export interface Difference {
  kind: "added" | "removed" | "changed";
  /** Where, as names and places from the outside in; empty for the whole. */
  path: readonly string[];
  before?: unknown;
  after?: unknown;
}

/** More than a person reads. */
export const most = 500;

/** Finds what differs between two JSON values, at most `limit` differences, in the order of the newer one. */
export function differences(before: unknown, after: unknown, limit = most): Difference[] {
  const found: Difference[] = [];
  compare(before, after, [], (difference) => {
    found.push(difference);
    return found.length < limit;
  });
  return found;
}

/** Counts what differs, kind by kind. */
export function countsOf(found: readonly Difference[]): Record<Difference["kind"], number> {
  const counts = { added: 0, removed: 0, changed: 0 };
  for (const { kind } of found) counts[kind]++;
  return counts;
}

/** Writes a path as people write it in code: `plan.days[2].title`. */
export function pathWords(path: readonly string[]): string {
  let words = "";
  for (const step of path) {
    if (/^\d+$/.test(step)) words += `[${step}]`;
    else if (/^[\p{L}_$][\p{L}\p{N}_$-]*$/u.test(step)) words += words === "" ? step : `.${step}`;
    else words += `[${JSON.stringify(step)}]`;
  }
  return words;
}

/** Takes a difference, and tells whether more are wanted. */
type Take = (difference: Difference) => boolean;

function compare(before: unknown, after: unknown, path: readonly string[], take: Take): boolean {
  if (before === after) return true;
  if (before === undefined) return take({ kind: "added", path, after });
  if (after === undefined) return take({ kind: "removed", path, before });
  if (Array.isArray(before) && Array.isArray(after)) return compareLists(before, after, path, take);
  if (isObject(before) && isObject(after)) {
    for (const name of Object.keys(after)) {
      const old = Object.hasOwn(before, name) ? before[name] : undefined;
      if (!compare(old, after[name], [...path, name], take)) return false;
    }
    for (const name of Object.keys(before)) {
      if (!Object.hasOwn(after, name) && !take({ kind: "removed", path: [...path, name], before: before[name] })) return false;
    }
    return true;
  }
  // Two numbers that are no numbers are the same; nothing else in JSON is unlike itself.
  if (Object.is(before, after)) return true;
  return take({ kind: "changed", path, before, after });
}

/** Compares lists: what both begin and end with is the same, so that an insertion is one difference and not many. */
function compareLists(before: readonly unknown[], after: readonly unknown[], path: readonly string[], take: Take): boolean {
  const shorter = Math.min(before.length, after.length);
  let start = 0;
  while (start < shorter && isSame(before[start], after[start])) start++;
  let end = 0;
  while (end < shorter - start && isSame(before[before.length - 1 - end], after[after.length - 1 - end])) end++;
  const [olds, news] = [before.length - end, after.length - end];
  for (let place = start; place < Math.max(olds, news); place++) {
    const there = [...path, String(place)];
    if (place >= olds) {
      if (!take({ kind: "added", path: there, after: after[place] })) return false;
    } else if (place >= news) {
      if (!take({ kind: "removed", path: there, before: before[place] })) return false;
    } else if (!compare(before[place], after[place], there, take)) return false;
  }
  return true;
}

function isSame(one: unknown, other: unknown): boolean {
  return compare(one, other, [], () => false);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
