import type { RunwireEvent } from "@runwire/client";
import { familyOf } from "./eventFamily";

/** Filter of the events. */
export interface Filter {
  /** Families (`tool`) and types (`tool.finished`); empty for all. */
  types: ReadonlySet<string>;
  /** Words that an event must all contain. */
  text: string;
}

/** Parses the filter in the URL query. */
export function parseFilter(query: URLSearchParams): Filter {
  const types = (query.get("type") ?? "").split(",").filter((type) => type !== "");
  return { types: new Set(types), text: query.get("text") ?? "" };
}

/** Returns the predicate of a filter; undefined if it matches everything. */
export function predicateOf({ types, text }: Filter): ((event: RunwireEvent) => boolean) | undefined {
  const words = text.toLowerCase().split(/\s+/).filter((word) => word !== "");
  if (types.size === 0 && words.length === 0) return undefined;
  return (event) => {
    if (types.size > 0 && !types.has(event.type) && !types.has(familyOf(event.type))) return false;
    if (words.length === 0) return true;
    // Serializing an event is expensive, so the type is searched first.
    const type = event.type.toLowerCase();
    const remaining = words.filter((word) => !type.includes(word));
    if (remaining.length === 0) return true;
    const json = JSON.stringify(event).toLowerCase();
    return remaining.every((word) => json.includes(word) || json.includes(jsonEscape(word)));
  };
}

/** Toggles a type; returns the value of the query parameter. */
export function toggleType(types: ReadonlySet<string>, type: string): string {
  const next = new Set(types);
  if (!next.delete(type)) next.add(type);
  return [...next].join(",");
}

/** Escapes quotes and backslashes as in JSON. */
function jsonEscape(word: string): string {
  return JSON.stringify(word).slice(1, -1);
}
