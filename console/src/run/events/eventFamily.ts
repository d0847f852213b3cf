import type { RunwireEvent } from "@runwire/client";

/** Families of event types. */
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

/** A family of event types. */
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

/** Returns the family of an event type; unknown types belong to `other`. */
export function familyOf(type: string): Family {
  const dot = type.indexOf(".");
  const prefix = dot === -1 ? type : type.slice(0, dot);
  return Object.hasOwn(byPrefix, prefix) ? (byPrefix[prefix] ?? "other") : "other";
}

/** Maximum length of a summary. */
const maxSummaryLength = 240;

/** Envelope fields that a summary omits. */
const envelope = new Set(["seq", "at", "thread_id", "run_id", "type", "step_id", "subagent_run_id", "message_id", "call_id"]);

/** Fields that a summary starts with, most important first. */
const mainFields = ["content", "delta", "message", "name", "node_id", "reply", "reason", "title", "state"];

/** Returns a one-line summary of an event. */
export function summaryOf(event: RunwireEvent): string {
  const fields = event as unknown as Readonly<Record<string, unknown>>;
  const parts: string[] = [];
  // A delta repeats fields of its start event.
  const omitted = new Set<string>(event.type.endsWith(".delta") ? ["stage", "format", "role"] : []);
  for (const name of mainFields) {
    const value = fields[name];
    if (typeof value === "string" && value !== "") {
      parts.push(value);
      omitted.add(name);
    }
  }
  let length = parts.reduce((sum, part) => sum + part.length, 0);
  for (const [name, value] of Object.entries(fields)) {
    if (length > maxSummaryLength) break;
    if (envelope.has(name) || omitted.has(name)) continue;
    const part = `${name} ${abbreviate(value)}`;
    parts.push(part);
    length += part.length;
  }
  return parts.join(" · ").slice(0, maxSummaryLength).replaceAll("\n", "⏎");
}

function abbreviate(value: unknown): string {
  if (typeof value === "string") return value.slice(0, maxSummaryLength);
  if (Array.isArray(value) && value.length > 40) return `[${value.length}]`;
  return (JSON.stringify(value) ?? "").slice(0, maxSummaryLength);
}
