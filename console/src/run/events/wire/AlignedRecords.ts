import type { WireFrame } from "./splitFrames";

/** The frames of a record on each side. */
export interface RecordRow {
  seq: number;
  sides: [WireFrame[], WireFrame[]];
  /** Number of lines of each side. */
  lines: [number, number];
}

/** Line height and padding of a row in pixels. */
export const lineHeight = 19;
export const rowPadding = 13;

/** Longer lines are truncated; the details show them completely. */
export const maxLineLength = 2000;

/** Aligns two streams of one run by record while both grow. */
export class AlignedRecords {
  readonly rows: RecordRow[] = [];
  /** Top of each row in pixels, and the bottom of the last one. */
  readonly tops: number[] = [0];
  /** Number of frames and characters of each side. */
  readonly frames: [number, number] = [0, 0];
  readonly characters: [number, number] = [0, 0];
  readonly #bySeq = new Map<number, RecordRow>();
  readonly #lastSeq: [number, number] = [0, 0];
  /** First row whose top has to be recomputed. */
  #stale = 0;

  /** Adds received frames of a side. */
  add(side: 0 | 1, frames: readonly WireFrame[]): void {
    for (const frame of frames) {
      // A frame without a cursor belongs to the previous record.
      const seq = frame.cursor === undefined ? this.#lastSeq[side] : Number.parseInt(frame.cursor, 10);
      this.#lastSeq[side] = seq;
      const row = this.#bySeq.get(seq) ?? this.#insert(seq);
      const sideFrames = row.sides[side];
      const previous = sideFrames.at(-1);
      // Repeated keep-alives of a waiting run would fill the page.
      if (frame.isControl === true && previous?.isControl === true && previous.text === frame.text) continue;
      sideFrames.push(frame);
      row.lines[side] += linesOf(frame.text).length;
      this.characters[side] += frame.text.length;
      if (frame.isControl !== true) this.frames[side]++;
      this.#stale = Math.min(this.#stale, this.#indexOf(seq));
    }
    this.#updateTops();
  }

  #insert(seq: number): RecordRow {
    const row: RecordRow = { seq, sides: [[], []], lines: [0, 0] };
    this.#bySeq.set(seq, row);
    this.rows.splice(this.#indexOf(seq), 0, row);
    return row;
  }

  /** Returns the index of a record, or where to insert it. Most come last. */
  #indexOf(seq: number): number {
    const last = this.rows.at(-1);
    if (last === undefined || last.seq < seq) return this.rows.length;
    let [low, high] = [0, this.rows.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.rows[middle]?.seq ?? Infinity) < seq) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #updateTops(): void {
    for (let index = this.#stale; index < this.rows.length; index++) {
      const lines = Math.max(1, ...(this.rows[index]?.lines ?? []));
      this.tops[index + 1] = (this.tops[index] ?? 0) + lines * lineHeight + rowPadding;
    }
    this.#stale = this.rows.length;
  }
}

/** Returns the lines of a frame without the trailing newline. */
export function linesOf(text: string): string[] {
  return text.replace(/\n$/, "").split("\n");
}
