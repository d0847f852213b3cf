import type { Field } from "./fields";
import { isObject } from "./schema";

/** The input of a field so far. Numbers and JSON stay texts until they are sent. */
export type Draft = string | boolean | number | null | readonly number[] | readonly Item[] | { readonly [name: string]: Draft };

/** An item of a list with a stable key. */
export interface Item {
  key: number;
  draft: Draft;
}

/** Returns the initial draft of a field. */
export function emptyDraft(field: Field, value: unknown = field.default): Draft {
  switch (field.kind) {
    case "text":
      return typeof value === "string" ? toInputValue(field.input, value) : "";
    case "number":
      return typeof value === "number" ? String(value) : "";
    case "choice": {
      const index = field.options.findIndex((option) => isEqual(option.value, value));
      return index === -1 ? null : index;
    }
    case "multi-choice": {
      const chosen = Array.isArray(value) ? value : [];
      return field.options.flatMap((option, index) => (chosen.some((each) => isEqual(each, option.value)) ? [index] : []));
    }
    case "boolean":
      return typeof value === "boolean" ? value : null;
    case "list": {
      const values = Array.isArray(value) ? value : [];
      const count = Math.max(values.length, Math.min(field.min, 20));
      return Array.from({ length: count }, (_, key) => ({
        key,
        draft: key < values.length ? emptyDraft(field.item, values[key]) : emptyDraft(field.item),
      }));
    }
    case "group": {
      const object = isObject(value) ? value : {};
      return Object.fromEntries(
        field.fields.map((each) => [each.name, each.name in object ? emptyDraft(each, object[each.name]) : emptyDraft(each)]),
      );
    }
    case "constant":
      return null;
    case "json":
      return value === undefined ? "" : JSON.stringify(value, null, 2);
  }
}

/** A text that cannot be parsed as JSON or as a number. */
export interface UnparsableInput {
  pointer: string;
  kind: "json" | "number";
}

/**
 * Converts a draft to its value; `undefined` is omitted. Adds input that cannot be parsed to `unparsable`.
 */
export function valueOf(field: Field, draft: Draft | undefined, unparsable: UnparsableInput[] = [], pointer = ""): unknown {
  const empty = field.nullable && field.required ? null : undefined;
  switch (field.kind) {
    case "text":
      return typeof draft === "string" && draft !== "" ? fromInputValue(field.input, draft) : empty;
    case "number": {
      const text = typeof draft === "string" ? draft.trim() : "";
      if (text === "") return empty;
      const number = Number(text);
      if (Number.isFinite(number)) return number;
      unparsable.push({ pointer, kind: "number" });
      return undefined;
    }
    case "choice":
      return typeof draft === "number" ? field.options[draft]?.value : empty;
    case "multi-choice": {
      const chosen = Array.isArray(draft) ? (draft as readonly number[]) : [];
      if (chosen.length === 0 && !field.required && field.default === undefined) return empty;
      return chosen.map((index) => field.options[index]?.value);
    }
    case "boolean":
      return typeof draft === "boolean" ? draft : field.required ? false : undefined;
    case "list": {
      const items = Array.isArray(draft) ? (draft as readonly Item[]) : [];
      if (items.length === 0 && !field.required && field.default === undefined) return empty;
      return items.map((item, index) => valueOf(field.item, item.draft, unparsable, `${pointer}/${index}`) ?? null);
    }
    case "group":
      return groupValue(field, draft, unparsable, pointer);
    case "constant":
      return field.value;
    case "json": {
      const text = typeof draft === "string" ? draft.trim() : "";
      if (text === "") return empty;
      try {
        return JSON.parse(text) as unknown;
      } catch {
        unparsable.push({ pointer, kind: "json" });
        return undefined;
      }
    }
  }
}

function groupValue(field: Field & { kind: "group" }, draft: Draft | undefined, unparsable: UnparsableInput[], pointer: string): unknown {
  const drafts = isObject(draft) ? (draft as Readonly<Record<string, Draft>>) : {};
  const values: Record<string, unknown> = {};
  let isFilled = false;
  for (const each of field.fields) {
    const value = valueOf(each, drafts[each.name], unparsable, `${pointer}/${escapePointer(each.name)}`);
    if (value === undefined) continue;
    // Keeps `__proto__` an ordinary property name.
    Object.defineProperty(values, each.name, { value, enumerable: true, configurable: true, writable: true });
    isFilled ||= each.kind !== "constant";
  }
  return isFilled || field.required ? values : undefined;
}

/** Returns a draft with the value at a path replaced. */
export function replaceAt(draft: Draft, path: readonly (string | number)[], next: Draft): Draft {
  const [first, ...rest] = path;
  if (first === undefined) return next;
  if (typeof first === "number") {
    const items = (Array.isArray(draft) ? draft : []) as readonly Item[];
    return items.map((item, index) => (index === first ? { ...item, draft: replaceAt(item.draft, rest, next) } : item));
  }
  const drafts = isObject(draft) ? (draft as Readonly<Record<string, Draft>>) : {};
  return { ...drafts, [first]: replaceAt(drafts[first] ?? null, rest, next) };
}

/** Escapes a name for a JSON pointer. */
export function escapePointer(name: string): string {
  return name.replaceAll("~", "~0").replaceAll("/", "~1");
}

function isEqual(one: unknown, other: unknown): boolean {
  return one === other || (typeof one === "object" && JSON.stringify(one) === JSON.stringify(other));
}

/** Converts a time to the value of the browser's input: local time without an offset. */
function toInputValue(input: string, value: string): string {
  if (input === "time") return value.slice(0, 5);
  if (input !== "datetime-local") return value;
  const at = new Date(value);
  if (Number.isNaN(at.getTime())) return value;
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

/** Converts the value of the browser's input to the JSON Schema format: with seconds and an offset. */
function fromInputValue(input: string, value: string): string {
  if (input === "time") return /^\d\d:\d\d$/.test(value) ? `${value}:00${timeZoneOffset(new Date())}` : value;
  if (input !== "datetime-local") return value;
  const at = new Date(value);
  return Number.isNaN(at.getTime()) ? value : at.toISOString().replace(".000Z", "Z");
}

/** Returns the UTC offset of the browser: `+08:00`, or `Z`. */
function timeZoneOffset(now: Date): string {
  const minutes = -now.getTimezoneOffset();
  if (minutes === 0) return "Z";
  const twoDigits = (number: number) => String(Math.trunc(Math.abs(number))).padStart(2, "0");
  return `${minutes < 0 ? "-" : "+"}${twoDigits(minutes / 60)}:${twoDigits(minutes % 60)}`;
}
