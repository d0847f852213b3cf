/** Maximum number of values in a patched document: each copy of the document into itself doubles it. */
const MAX_VALUES = 1_000_000;

/** Maximum nesting depth of a patched document. */
const MAX_DEPTH = 128;

/** The operations of RFC 6902. */
const OPERATIONS: readonly unknown[] = ["add", "remove", "replace", "move", "copy", "test"];

/** The patch cannot be applied to its document. */
class PatchError extends Error {}

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
    return isWithinLimits(changed) ? changed : document;
  } catch (error) {
    if (error instanceof PatchError) return document;
    throw error;
  }
}

function applyOperation(document: unknown, operation: unknown): unknown {
  const name = member(operation, "op");
  if (typeof name === "string" && !OPERATIONS.includes(name)) return document;
  const path = parsePointer(member(operation, "path"));
  switch (name) {
    case "add":
      return add(document, path, member(operation, "value"));
    case "remove":
      return remove(document, path);
    case "replace":
      valueAt(document, path);
      return replaceAt(document, path, () => member(operation, "value"));
    case "move": {
      const from = parsePointer(member(operation, "from"));
      // A value cannot move into itself.
      if (path.length > from.length && from.every((key, at) => key === path[at])) throw new PatchError();
      return add(remove(document, from), path, valueAt(document, from));
    }
    case "copy":
      return add(document, path, valueAt(document, parsePointer(member(operation, "from"))));
    case "test":
      if (!equals(valueAt(document, path), member(operation, "value"))) throw new PatchError();
      return document;
    default:
      throw new PatchError();
  }
}

function member(operation: unknown, name: string): unknown {
  if (!isObject(operation) || !Object.hasOwn(operation, name)) throw new PatchError();
  return operation[name];
}

function parsePointer(path: unknown): string[] {
  if (path === "") return [];
  if (typeof path !== "string" || !path.startsWith("/")) throw new PatchError();
  return path.slice(1).split("/").map((key) => key.replaceAll("~1", "/").replaceAll("~0", "~"));
}

function valueAt(document: unknown, path: readonly string[]): unknown {
  let found = document;
  for (const key of path) {
    if (Array.isArray(found)) found = found[parseIndex(key, found.length - 1)];
    else if (isObject(found) && Object.hasOwn(found, key)) found = found[key];
    else throw new PatchError();
  }
  return found;
}

function add(document: unknown, path: readonly string[], value: unknown): unknown {
  const key = path.at(-1);
  if (key === undefined) return value;
  return replaceAt(document, path.slice(0, -1), (parent) => {
    if (Array.isArray(parent)) return parent.toSpliced(key === "-" ? parent.length : parseIndex(key, parent.length), 0, value);
    if (isObject(parent)) return { ...parent, [key]: value };
    throw new PatchError();
  });
}

function remove(document: unknown, path: readonly string[]): unknown {
  const key = path.at(-1);
  if (key === undefined) return null;
  valueAt(document, path);
  return replaceAt(document, path.slice(0, -1), (parent) => {
    if (Array.isArray(parent)) return parent.toSpliced(parseIndex(key, parent.length - 1), 1);
    return Object.fromEntries(Object.entries(parent as object).filter(([name]) => name !== key));
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
  if (!isObject(document) || !Object.hasOwn(document, key)) throw new PatchError();
  return { ...document, [key]: replaceAt(document[key], rest, change) };
}

function parseIndex(key: string, last: number): number {
  if (!/^(0|[1-9]\d{0,9})$/.test(key) || Number(key) > last) throw new PatchError();
  return Number(key);
}

function equals(one: unknown, other: unknown): boolean {
  if (Array.isArray(one)) return Array.isArray(other) && one.length === other.length && one.every((item, at) => equals(item, other[at]));
  if (!isObject(one) || !isObject(other) || Array.isArray(other)) return one === other;
  const keys = Object.keys(one);
  return keys.length === Object.keys(other).length && keys.every((key) => Object.hasOwn(other, key) && equals(one[key], other[key]));
}

/** The size of a value: its number of values, itself included, and its depth. */
interface Size {
  readonly values: number;
  readonly depth: number;
}

const SCALAR: Size = { values: 1, depth: 0 };
const TOO_LARGE: Size = { values: Infinity, depth: Infinity };

/** The sizes of values that were measured before: a patch shares what it does not change, so that costs nothing again. */
const sizes = new WeakMap<object, Size>();

function isWithinLimits(document: unknown): boolean {
  const { values, depth } = sizeOf(document, 0);
  return values <= MAX_VALUES && depth <= MAX_DEPTH;
}

/** Measures a value that lies at a level of the document. */
function sizeOf(value: unknown, level: number): Size {
  if (!isObject(value)) return SCALAR;
  const known = sizes.get(value);
  if (known !== undefined) return known;
  if (level > MAX_DEPTH) return TOO_LARGE;
  let values = 1;
  let depth = 0;
  for (const inner of Object.values(value)) {
    const size = sizeOf(inner, level + 1);
    values += size.values;
    depth = Math.max(depth, size.depth + 1);
    if (values > MAX_VALUES) return TOO_LARGE;
  }
  const size = { values, depth };
  if (depth <= MAX_DEPTH) sizes.set(value, size);
  return size;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
