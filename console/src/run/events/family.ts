import type { RunwireEvent } from "@runwire/client";

/** Kinds of events that a person tells apart at a glance. */
export const families = [
  "run",
  "step",
  "text",
  "thinking",
  "tool",
  "interaction",
  "state",
  "thought",
  "data",
  "usage",
  "notice",
  "other",
] as const;

/** One kind of events. */
export type Family = (typeof families)[number];

const byPrefix: Readonly<Record<string, Family>> = {
  run: "run",
  step: "step",
  text: "text",
  thinking: "thinking",
  tool: "tool",
  interaction: "interaction",
  state: "state",
  messages: "state",
  checkpoint: "state",
  tot: "thought",
  got: "thought",
  data: "data",
  usage: "usage",
  metrics: "usage",
  notice: "notice",
};

/** Tells an event's family by its type; a type that nobody here knows belongs to `other`. */
export function familyOf(type: string): Family {
  const dot = type.indexOf(".");
  const prefix = dot === -1 ? type : type.slice(0, dot);
  return Object.hasOwn(byPrefix, prefix) ? (byPrefix[prefix] ?? "other") : "other";
}

/** A longer text is of no use in one line. */
const longest = 240;

/** What every event has, and a line about one need not repeat. */
const envelope = new Set(["seq", "at", "thread_id", "run_id", "type", "step_id", "subagent_run_id", "message_id", "call_id"]);

/** Fields that say most of what an event means, best first. */
const telling = ["content", "delta", "message", "name", "node_id", "reply", "reason", "title", "state"];

/** Says in one line what an event is about, in its own words. */
export function summaryOf(event: RunwireEvent): string {
  const fields = event as unknown as Readonly<Record<string, unknown>>;
  const words: string[] = [];
  // A piece of a text repeats what its start has told.
  const used = new Set<string>(event.type.endsWith(".delta") ? ["stage", "format", "role"] : []);
  for (const name of telling) {
    const value = fields[name];
    if (typeof value === "string" && value !== "") {
      words.push(value);
      used.add(name);
    }
  }
  let length = words.reduce((sum, word) => sum + word.length, 0);
  for (const [name, value] of Object.entries(fields)) {
    if (length > longest) break;
    if (envelope.has(name) || used.has(name)) continue;
    const told = `${name} ${briefly(value)}`;
    words.push(told);
    length += told.length;
  }
  return words.join(" · ").slice(0, longest).replaceAll("\n", "⏎");
}

function briefly(value: unknown): string {
  if (typeof value === "string") return value.slice(0, longest);
  if (Array.isArray(value) && value.length > 40) return `[${value.length}]`;
  return (JSON.stringify(value) ?? "").slice(0, longest);
}
