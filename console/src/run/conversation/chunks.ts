import type { Part } from "@runwire/client";

/** Consecutive parts that are rendered together. */
export interface Chunk {
  /** Index of its first part; it never changes. */
  start: number;
  parts: readonly Part[];
  /** Step id of the part before it. */
  stepBefore: string | undefined;
}

const chunkSize = 20;
const maxChunkSize = 80;

/**
 * Splits the parts of a run into chunks. An unchanged chunk stays the same object, so that a delta renders one chunk,
 * however long the run is.
 */
export class Chunker {
  #starts: number[] = [];
  #assigned = 0;
  #chunks: Chunk[] = [];
  #parts: readonly Part[] | undefined;

  /** Returns the chunks of the parts. */
  chunksOf(parts: readonly Part[]): readonly Chunk[] {
    if (parts === this.#parts) return this.#chunks;
    this.#parts = parts;
    for (; this.#assigned < parts.length; this.#assigned++) {
      const last = this.#starts.at(-1);
      if (last === undefined || startsChunk(parts, last, this.#assigned)) this.#starts.push(this.#assigned);
    }
    this.#chunks = this.#starts.map((start, index) => {
      const previous = this.#chunks[index];
      const end = this.#starts[index + 1] ?? parts.length;
      if (previous !== undefined && isUnchanged(previous.parts, parts, start, end)) return previous;
      return { start, parts: parts.slice(start, end), stepBefore: parts[start - 1]?.stepId };
    });
    return this.#chunks;
  }
}

/** Returns true if a chunk starts at a part. Consecutive tool calls stay in one chunk, up to its maximum size. */
function startsChunk(parts: readonly Part[], start: number, at: number): boolean {
  const length = at - start;
  return length >= maxChunkSize || (length >= chunkSize && !(parts[at]?.kind === "tool" && parts[at - 1]?.kind === "tool"));
}

function isUnchanged(previous: readonly Part[], parts: readonly Part[], start: number, end: number): boolean {
  if (previous.length !== end - start) return false;
  for (let at = start; at < end; at++) if (previous[at - start] !== parts[at]) return false;
  return true;
}

/** A row of the conversation: a part, or consecutive tool calls. */
export type ConversationRow = { kind: "part"; part: Part } | { kind: "calls"; calls: readonly (Part & { kind: "tool" })[] };

/** Groups consecutive calls of a step, and omits notices that repeat the error of a failed call. */
export function rowsOf(parts: readonly Part[]): ConversationRow[] {
  const rows: ConversationRow[] = [];
  for (const part of parts) {
    const last = rows.at(-1);
    if (part.kind === "notice" && last?.kind === "calls" && last.calls.some((call) => call.error?.message === part.message)) continue;
    if (part.kind !== "tool") rows.push({ kind: "part", part });
    else if (last?.kind === "calls" && last.calls[0]?.stepId === part.stepId) rows[rows.length - 1] = { kind: "calls", calls: [...last.calls, part] };
    else rows.push({ kind: "calls", calls: [part] });
  }
  return rows;
}

/** Returns the maximum number of calls that ran in parallel. */
export function maxParallel(calls: readonly { startedAt: number; endedAt?: number }[]): number {
  const boundaries = calls.flatMap((call) => [
    { at: call.startedAt, change: 1 },
    { at: call.endedAt ?? Infinity, change: -1 },
  ]);
  // A call that ends when another starts is not parallel to it.
  boundaries.sort((one, other) => one.at - other.at || one.change - other.change);
  let current = 0;
  let maximum = 0;
  for (const boundary of boundaries) {
    current += boundary.change;
    maximum = Math.max(maximum, current);
  }
  return maximum;
}
