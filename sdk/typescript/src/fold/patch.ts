/** Maximum number of values in a patched document: each copy of the document into itself doubles it. */
const MAX_VALUES = 1_000_000;

/** Maximum nesting depth of a patched document. */
const MAX_DEPTH = 128;

/** The patch cannot be applied to its document. */
class PatchError extends Error {}

function refuse(): never {
  throw new PatchError();
}

/**
 * Applies a JSON Patch (RFC 6902); unchanged values are shared with the document.
 *
 * Returns the document itself if the patch cannot be applied. Like the official AG-UI client, it skips operations that
 * the standard does not define.
 */
export function applyPatch(document: unknown, patch: unknown): unknown {
  if (!Array.isArray(patch)) return document;
  try {
    let changed = document;
    for (const operation of patch as unknown[]) changed = applyOperation(changed, operation);
    const [values, depth] = sizeOf(changed, 0);
    return values <= MAX_VALUES && depth <= MAX_DEPTH ? changed : document;
  } catch (error) {
    if (error instanceof PatchError) return document;
    throw error;
  }
}

/** The operations of RFC 6902. */
const OPERATIONS: Record<string, (document: unknown, path: string[], operation: unknown) => unknown> = {
  add: (document, path, operation) => add(document, path, member(operation, "value")),
  remove,
  replace: (document, path, operation) => replaceAt(document, path, () => member(operation, "value")),
  move(document, path, operation) {
    const from = parsePointer(member(operation, "from"));
    // A value cannot move into itself.
    if (path.length > from.length && from.every((key, at) => key === path[at])) refuse();
    return add(remove(document, from), path, valueAt(document, from));
  },
  copy: (document, path, operation) => add(document, path, valueAt(document, parsePointer(member(operation, "from")))),
  test: (document, path, operation) => (equals(valueAt(document, path), member(operation, "value")) ? document : refuse()),
};

function applyOperation(document: unknown, operation: unknown): unknown {
  const name = member(operation, "op");
  if (typeof name !== "string") refuse();
  if (!Object.hasOwn(OPERATIONS, name)) return document;
  return OPERATIONS[name]?.(document, parsePointer(member(operation, "path")), operation);
}

function member(operation: unknown, name: string): unknown {
  if (!isObject(operation) || !Object.hasOwn(operation, name)) refuse();
  return operation[name];
}

function parsePointer(path: unknown): string[] {
  if (path === "") return [];
  if (typeof path !== "string" || !path.startsWith("/")) refuse();
  return path.slice(1).split("/").map((key) => key.replaceAll("~1", "/").replaceAll("~0", "~"));
}

function valueAt(document: unknown, path: readonly string[]): unknown {
  let found = document;
  for (const key of path) {
    if (Array.isArray(found)) found = found[parseIndex(key, found.length - 1)];
    else if (isObject(found) && Object.hasOwn(found, key)) found = found[key];
    else refuse();
  }
  return found;
}

function add(document: unknown, path: readonly string[], value: unknown): unknown {
  const key = path.at(-1);
  if (key === undefined) return value;
  return replaceAt(document, path.slice(0, -1), (parent) => {
    if (Array.isArray(parent)) return parent.toSpliced(key === "-" ? parent.length : parseIndex(key, parent.length), 0, value);
    if (isObject(parent)) return { ...parent, [key]: value };
    refuse();
  });
}

function remove(document: unknown, path: readonly string[]): unknown {
  const key = path.at(-1);
  if (key === undefined) return null;
  valueAt(document, path);
  return replaceAt(document, path.slice(0, -1), (parent) => {
    if (Array.isArray(parent)) return parent.toSpliced(parseIndex(key, parent.length - 1), 1);
    const { [key]: _, ...rest } = parent as Record<string, unknown>;
    return rest;
  });
}

/** Replaces the value at a path; copies its parents. */
function replaceAt(document: unknown, path: readonly string[], change: (value: unknown) => unknown): unknown {
  const [key, ...rest] = path;
  if (key === undefined) return change(document);
  if (Array.isArray(document)) {
    const at = parseIndex(key, document.length - 1);
    return document.with(at, replaceAt(document[at], rest, change));
  }
  if (!isObject(document) || !Object.hasOwn(document, key)) refuse();
  return { ...document, [key]: replaceAt(document[key], rest, change) };
}

function parseIndex(key: string, last: number): number {
  return /^(0|[1-9]\d{0,9})$/.test(key) && Number(key) <= last ? Number(key) : refuse();
}

function equals(one: unknown, other: unknown): boolean {
  if (Array.isArray(one)) return Array.isArray(other) && one.length === other.length && one.every((item, at) => equals(item, other[at]));
  if (!isObject(one) || !isObject(other) || Array.isArray(other)) return one === other;
  const keys = Object.keys(one);
  return keys.length === Object.keys(other).length && keys.every((key) => Object.hasOwn(other, key) && equals(one[key], other[key]));
}

/** The size of a value: its number of values, itself included, and its depth. */
type Size = readonly [values: number, depth: number];

/** The sizes of values that were measured before: a patch shares what it does not change, so that costs nothing again. */
const sizes = new WeakMap<object, Size>();

/** Measures a value that lies at a level of the document; what is too large has an infinite size. */
function sizeOf(value: unknown, level: number): Size {
  if (!isObject(value)) return [1, 0];
  const known = sizes.get(value);
  if (known) return known;
  let [values, depth] = [level > MAX_DEPTH ? Infinity : 1, 0];
  for (const inner of Object.values(value)) {
    if (values > MAX_VALUES) return [values, depth];
    const [more, deeper] = sizeOf(inner, level + 1);
    values += more;
    depth = Math.max(depth, deeper + 1);
  }
  if (depth <= MAX_DEPTH && values <= MAX_VALUES) sizes.set(value, [values, depth]);
  return [values, depth];
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
