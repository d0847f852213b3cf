import type { Field } from "./fields";
import { isObject } from "./schema";

/** What a person has typed so far, in the shape of its field: texts stay texts until they are sent. */
export type Draft = string | boolean | number | null | readonly number[] | readonly Item[] | { readonly [name: string]: Draft };

/** An entry of a list, with a key that it keeps when it moves. */
export interface Item {
  key: number;
  draft: Draft;
}

/** Makes the draft that a field begins with. */
export function emptyDraft(field: Field, value: unknown = field.default): Draft {
  switch (field.kind) {
    case "text":
      return typeof value === "string" ? shown(field.input, value) : "";
    case "number":
      return typeof value === "number" ? String(value) : "";
    case "choice": {
      const index = field.options.findIndex((option) => isSame(option.value, value));
      return index === -1 ? null : index;
    }
    case "many": {
      const chosen = Array.isArray(value) ? value : [];
      return field.options.flatMap((option, index) => (chosen.some((each) => isSame(each, option.value)) ? [index] : []));
    }
    case "boolean":
      return typeof value === "boolean" ? value : null;
    case "list": {
      const values = Array.isArray(value) ? value : [];
      const count = Math.max(values.length, Math.min(field.least, 20));
      return Array.from({ length: count }, (_, key) => ({
        key,
        draft: key < values.length ? emptyDraft(field.item, values[key]) : emptyDraft(field.item),
      }));
    }
    case "group": {
      const given = isObject(value) ? value : {};
      return Object.fromEntries(
        field.fields.map((each) => [each.name, each.name in given ? emptyDraft(each, given[each.name]) : emptyDraft(each)]),
      );
    }
    case "constant":
      return null;
    case "json":
      return value === undefined ? "" : JSON.stringify(value, null, 2);
  }
}

/** A text that is no JSON, or no number. */
export interface Unreadable {
  pointer: string;
  what: "json" | "number";
}

/**
 * Reads the value that a draft means; `undefined` is left out. What cannot be read is told, and takes the place of
 * nothing.
 */
export function valueOf(field: Field, draft: Draft | undefined, unreadable: Unreadable[] = [], pointer = ""): unknown {
  const empty = field.nullable && field.required ? null : undefined;
  switch (field.kind) {
    case "text":
      return typeof draft === "string" && draft !== "" ? sent(field.input, draft) : empty;
    case "number": {
      const text = typeof draft === "string" ? draft.trim() : "";
      if (text === "") return empty;
      const number = Number(text);
      if (Number.isFinite(number)) return number;
      unreadable.push({ pointer, what: "number" });
      return undefined;
    }
    case "choice":
      return typeof draft === "number" ? field.options[draft]?.value : empty;
    case "many": {
      const chosen = Array.isArray(draft) ? (draft as readonly number[]) : [];
      if (chosen.length === 0 && !field.required && field.default === undefined) return empty;
      return chosen.map((index) => field.options[index]?.value);
    }
    case "boolean":
      return typeof draft === "boolean" ? draft : field.required ? false : undefined;
    case "list": {
      const items = Array.isArray(draft) ? (draft as readonly Item[]) : [];
      if (items.length === 0 && !field.required && field.default === undefined) return empty;
      return items.map((item, index) => valueOf(field.item, item.draft, unreadable, `${pointer}/${index}`) ?? null);
    }
    case "group":
      return groupValue(field, draft, unreadable, pointer);
    case "constant":
      return field.value;
    case "json": {
      const text = typeof draft === "string" ? draft.trim() : "";
      if (text === "") return empty;
      try {
        return JSON.parse(text) as unknown;
      } catch {
        unreadable.push({ pointer, what: "json" });
        return undefined;
      }
    }
  }
}

function groupValue(field: Field & { kind: "group" }, draft: Draft | undefined, unreadable: Unreadable[], pointer: string): unknown {
  const drafts = isObject(draft) ? (draft as Readonly<Record<string, Draft>>) : {};
  const values: Record<string, unknown> = {};
  let filled = false;
  for (const each of field.fields) {
    const value = valueOf(each, drafts[each.name], unreadable, `${pointer}/${escaped(each.name)}`);
    if (value === undefined) continue;
    // `__proto__` as a field's name must stay a field's name.
    Object.defineProperty(values, each.name, { value, enumerable: true, configurable: true, writable: true });
    filled ||= each.kind !== "constant";
  }
  return filled || field.required ? values : undefined;
}

/** Changes a draft at one place, and leaves everything else as it is. */
export function changed(draft: Draft, path: readonly (string | number)[], next: Draft): Draft {
  const [first, ...rest] = path;
  if (first === undefined) return next;
  if (typeof first === "number") {
    const items = (Array.isArray(draft) ? draft : []) as readonly Item[];
    return items.map((item, index) => (index === first ? { ...item, draft: changed(item.draft, rest, next) } : item));
  }
  const drafts = isObject(draft) ? (draft as Readonly<Record<string, Draft>>) : {};
  return { ...drafts, [first]: changed(drafts[first] ?? null, rest, next) };
}

/** Writes a name so that it can stand in a JSON pointer. */
export function escaped(name: string): string {
  return name.replaceAll("~", "~0").replaceAll("/", "~1");
}

function isSame(one: unknown, other: unknown): boolean {
  return one === other || (typeof one === "object" && JSON.stringify(one) === JSON.stringify(other));
}

/** Shows a moment in the form that the browser's field wants: its own time, without a zone. */
function shown(input: string, value: string): string {
  if (input === "time") return value.slice(0, 5);
  if (input !== "datetime-local") return value;
  const at = new Date(value);
  if (Number.isNaN(at.getTime())) return value;
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

/** Writes what a browser's field gives as JSON Schema's formats want it: with seconds and a zone. */
function sent(input: string, value: string): string {
  if (input === "time") return /^\d\d:\d\d$/.test(value) ? `${value}:00${zone(new Date())}` : value;
  if (input !== "datetime-local") return value;
  const at = new Date(value);
  return Number.isNaN(at.getTime()) ? value : at.toISOString().replace(".000Z", "Z");
}

/** Writes the zone of this browser: `+08:00`, or `Z`. */
function zone(now: Date): string {
  const minutes = -now.getTimezoneOffset();
  if (minutes === 0) return "Z";
  const two = (number: number) => String(Math.trunc(Math.abs(number))).padStart(2, "0");
  return `${minutes < 0 ? "-" : "+"}${two(minutes / 60)}:${two(minutes % 60)}`;
}
