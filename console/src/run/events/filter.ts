import type { RunwireEvent } from "@runwire/client";
import { familyOf } from "./family";

/** Which events are shown. */
export interface Filter {
  /** Families (`tool`) and types (`tool.finished`); all of them if there are none. */
  types: ReadonlySet<string>;
  /** What an event must hold somewhere, each word of it. */
  text: string;
}

/** Reads a filter from the address. */
export function filterFrom(query: URLSearchParams): Filter {
  const types = (query.get("type") ?? "").split(",").filter((type) => type !== "");
  return { types: new Set(types), text: query.get("text") ?? "" };
}

/** Makes the test for a filter; nothing if it lets everything through. */
export function matcher({ types, text }: Filter): ((event: RunwireEvent) => boolean) | undefined {
  const words = text.toLowerCase().split(/\s+/).filter((word) => word !== "");
  if (types.size === 0 && words.length === 0) return undefined;
  return (event) => {
    if (types.size > 0 && !types.has(event.type) && !types.has(familyOf(event.type))) return false;
    if (words.length === 0) return true;
    // Writing an event out costs most of the time, so what the type alone answers is answered first.
    const type = event.type.toLowerCase();
    const left = words.filter((word) => !type.includes(word));
    if (left.length === 0) return true;
    const whole = JSON.stringify(event).toLowerCase();
    return left.every((word) => whole.includes(word) || whole.includes(escaped(word)));
  };
}

/** Adds a type to a filter, or takes it out, as the address has it. */
export function toggled(types: ReadonlySet<string>, type: string): string {
  const next = new Set(types);
  if (!next.delete(type)) next.add(type);
  return [...next].join(",");
}

/** Quotes and backslashes look different inside of JSON. */
function escaped(word: string): string {
  return JSON.stringify(word).slice(1, -1);
}
