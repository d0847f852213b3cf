/** Values that a patched document may have; a few copies of the whole into itself would double it each time. */
const MOST_VALUES = 1_000_000;

/** Levels that a patched document may have. */
const MOST_LEVELS = 128;

/** The operations that the standard defines. */
const OPERATIONS: readonly unknown[] = ["add", "remove", "replace", "move", "copy", "test"];

/** Says that a patch does not fit its document. */
class Misfit extends Error {}

/**
 * Applies a JSON Patch (RFC 6902) and shares what did not change.
 *
 * A patch that does not fit changes nothing: the document itself comes back. An operation that the standard does not
 * define is left out, and the others apply: that is what the official AG-UI client does.
 */
export function applyPatch(document: unknown, patch: unknown): unknown {
  if (!Array.isArray(patch)) return document;
  try {
    let changed = document;
    for (const operation of patch as unknown[]) changed = applyOne(changed, operation);
    return isWithinLimits(changed) ? changed : document;
  } catch (error) {
    if (error instanceof Misfit) return document;
    throw error;
  }
}

function applyOne(document: unknown, operation: unknown): unknown {
  const name = member(operation, "op");
  if (typeof name === "string" && !OPERATIONS.includes(name)) return document;
  const path = pointer(member(operation, "path"));
  switch (name) {
    case "add":
      return add(document, path, member(operation, "value"));
    case "remove":
      return remove(document, path);
    case "replace":
      look(document, path);
      return edit(document, path, () => member(operation, "value"));
    case "move": {
      const from = pointer(member(operation, "from"));
      // A value cannot move into itself.
      if (path.length > from.length && from.every((key, at) => key === path[at])) throw new Misfit();
      return add(remove(document, from), path, look(document, from));
    }
    case "copy":
      return add(document, path, look(document, pointer(member(operation, "from"))));
    case "test":
      if (!equals(look(document, path), member(operation, "value"))) throw new Misfit();
      return document;
    default:
      throw new Misfit();
  }
}

function member(operation: unknown, name: string): unknown {
  if (!isObject(operation) || !Object.hasOwn(operation, name)) throw new Misfit();
  return operation[name];
}

function pointer(path: unknown): string[] {
  if (path === "") return [];
  if (typeof path !== "string" || !path.startsWith("/")) throw new Misfit();
  return path.slice(1).split("/").map((key) => key.replaceAll("~1", "/").replaceAll("~0", "~"));
}

function look(document: unknown, path: readonly string[]): unknown {
  let found = document;
  for (const key of path) {
    if (Array.isArray(found)) found = found[index(key, found.length - 1)];
    else if (isObject(found) && Object.hasOwn(found, key)) found = found[key];
    else throw new Misfit();
  }
  return found;
}

function add(document: unknown, path: readonly string[], value: unknown): unknown {
  const key = path.at(-1);
  if (key === undefined) return value;
  return edit(document, path.slice(0, -1), (parent) => {
    if (Array.isArray(parent)) return parent.toSpliced(key === "-" ? parent.length : index(key, parent.length), 0, value);
    if (isObject(parent)) return { ...parent, [key]: value };
    throw new Misfit();
  });
}

function remove(document: unknown, path: readonly string[]): unknown {
  const key = path.at(-1);
  if (key === undefined) return null;
  look(document, path);
  return edit(document, path.slice(0, -1), (parent) => {
    if (Array.isArray(parent)) return parent.toSpliced(index(key, parent.length - 1), 1);
    return Object.fromEntries(Object.entries(parent as object).filter(([name]) => name !== key));
  });
}

/** Copies the way to a place and changes what is there. */
function edit(document: unknown, path: readonly string[], change: (value: unknown) => unknown): unknown {
  const [key, ...rest] = path;
  if (key === undefined) return change(document);
  if (Array.isArray(document)) {
    const at = index(key, document.length - 1);
    return document.with(at, edit(document[at], rest, change));
  }
  if (!isObject(document) || !Object.hasOwn(document, key)) throw new Misfit();
  return { ...document, [key]: edit(document[key], rest, change) };
}

function index(key: string, last: number): number {
  if (!/^(0|[1-9]\d{0,9})$/.test(key) || Number(key) > last) throw new Misfit();
  return Number(key);
}

function equals(one: unknown, other: unknown): boolean {
  if (Array.isArray(one)) return Array.isArray(other) && one.length === other.length && one.every((item, at) => equals(item, other[at]));
  if (!isObject(one) || !isObject(other) || Array.isArray(other)) return one === other;
  const keys = Object.keys(one);
  return keys.length === Object.keys(other).length && keys.every((key) => Object.hasOwn(other, key) && equals(one[key], other[key]));
}

function isWithinLimits(document: unknown): boolean {
  let values = 0;
  const ahead: [value: unknown, level: number][] = [[document, 0]];
  for (let next = ahead.pop(); next !== undefined; next = ahead.pop()) {
    const [value, level] = next;
    if (++values > MOST_VALUES || level > MOST_LEVELS) return false;
    if (typeof value !== "object" || value === null) continue;
    for (const inner of Object.values(value)) ahead.push([inner, level + 1]);
  }
  return true;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
