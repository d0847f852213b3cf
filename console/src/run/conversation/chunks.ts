import type { Part } from "@runwire/client";

/** Parts that are drawn, or left out of sight, together. */
export interface Chunk {
  /** The place of its first part, which never changes. */
  start: number;
  parts: readonly Part[];
  /** The step that the part before it was in. */
  stepBefore: string | undefined;
}

const usual = 20;
const most = 80;

/**
 * Cuts the parts of a run into chunks. A chunk whose parts have not changed stays the same object, so that one new
 * word draws one chunk anew, however long the run is.
 */
export class Chunker {
  #starts: number[] = [];
  #seen = 0;
  #chunks: Chunk[] = [];
  #of: readonly Part[] | undefined;

  /** Gives the chunks of the parts so far. */
  cut(parts: readonly Part[]): readonly Chunk[] {
    if (parts === this.#of) return this.#chunks;
    this.#of = parts;
    for (; this.#seen < parts.length; this.#seen++) {
      const last = this.#starts.at(-1);
      if (last === undefined || isBorder(parts, last, this.#seen)) this.#starts.push(this.#seen);
    }
    this.#chunks = this.#starts.map((start, index) => {
      const known = this.#chunks[index];
      const end = this.#starts[index + 1] ?? parts.length;
      if (known !== undefined && isSame(known.parts, parts, start, end)) return known;
      return { start, parts: parts.slice(start, end), stepBefore: parts[start - 1]?.stepId };
    });
    return this.#chunks;
  }
}

/** Calls that stand together stay together, up to a point. */
function isBorder(parts: readonly Part[], start: number, at: number): boolean {
  const length = at - start;
  return length >= most || (length >= usual && !(parts[at]?.kind === "tool" && parts[at - 1]?.kind === "tool"));
}

function isSame(known: readonly Part[], parts: readonly Part[], start: number, end: number): boolean {
  if (known.length !== end - start) return false;
  for (let at = start; at < end; at++) if (known[at - start] !== parts[at]) return false;
  return true;
}

/** A row of the conversation: one part, or calls that were made one right after the other. */
export type Row = { kind: "part"; part: Part } | { kind: "calls"; calls: readonly (Part & { kind: "tool" })[] };

/** Puts neighbouring calls of one step together, and leaves out a notice that says what a failed call says already. */
export function rowsOf(parts: readonly Part[]): Row[] {
  const rows: Row[] = [];
  for (const part of parts) {
    const last = rows.at(-1);
    if (part.kind === "notice" && last?.kind === "calls" && last.calls.some((call) => call.error?.message === part.message)) continue;
    if (part.kind !== "tool") rows.push({ kind: "part", part });
    else if (last?.kind === "calls" && last.calls[0]?.stepId === part.stepId) rows[rows.length - 1] = { kind: "calls", calls: [...last.calls, part] };
    else rows.push({ kind: "calls", calls: [part] });
  }
  return rows;
}

/** Tells how many of several calls went on at the same time, at most. */
export function sideBySide(calls: readonly { startedAt: number; endedAt?: number }[]): number {
  const moments = calls.flatMap((call) => [
    { at: call.startedAt, change: 1 },
    { at: call.endedAt ?? Infinity, change: -1 },
  ]);
  // What ends as another begins is not beside it.
  moments.sort((one, other) => one.at - other.at || one.change - other.change);
  let now = 0;
  let highest = 0;
  for (const moment of moments) {
    now += moment.change;
    highest = Math.max(highest, now);
  }
  return highest;
}
