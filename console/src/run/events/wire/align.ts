import type { Piece } from "./cut";

/** What one record became on each side. */
export interface Row {
  seq: number;
  sides: [Piece[], Piece[]];
  /** How many lines each side takes. */
  lines: [number, number];
}

/** The height of a line of text, and of what is around a row, in pixels. */
export const lineHeight = 19;
export const rowSpace = 13;

/** A line that is longer is shown whole only when it is asked for. */
export const longestLine = 2000;

/** Puts two streams of one run side by side, record by record, while both grow. */
export class Aligned {
  readonly rows: Row[] = [];
  /** Where each row begins, in pixels, and where the last one ends. */
  readonly tops: number[] = [0];
  /** How many frames and characters each side has. */
  readonly frames: [number, number] = [0, 0];
  readonly characters: [number, number] = [0, 0];
  readonly #bySeq = new Map<number, Row>();
  readonly #last: [number, number] = [0, 0];
  /** The first row whose place has to be counted anew. */
  #stale = 0;

  /** Adds what came on a side. */
  add(side: 0 | 1, pieces: readonly Piece[]): void {
    for (const piece of pieces) {
      // What has no cursor belongs to what came before it.
      const seq = piece.cursor === undefined ? this.#last[side] : Number.parseInt(piece.cursor, 10);
      this.#last[side] = seq;
      const row = this.#bySeq.get(seq) ?? this.#insert(seq);
      const there = row.sides[side];
      const before = there.at(-1);
      // Signs of life of a run that waits for days would fill the page.
      if (piece.isBare === true && before?.isBare === true && before.text === piece.text) continue;
      there.push(piece);
      row.lines[side] += shownLines(piece.text).length;
      this.characters[side] += piece.text.length;
      if (piece.isBare !== true) this.frames[side]++;
      this.#stale = Math.min(this.#stale, this.#placeOf(seq));
    }
    this.#count();
  }

  #insert(seq: number): Row {
    const row: Row = { seq, sides: [[], []], lines: [0, 0] };
    this.#bySeq.set(seq, row);
    this.rows.splice(this.#placeOf(seq), 0, row);
    return row;
  }

  /** Finds where a record stands, or would. Most come last. */
  #placeOf(seq: number): number {
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

  #count(): void {
    for (let place = this.#stale; place < this.rows.length; place++) {
      const lines = Math.max(1, ...(this.rows[place]?.lines ?? []));
      this.tops[place + 1] = (this.tops[place] ?? 0) + lines * lineHeight + rowSpace;
    }
    this.#stale = this.rows.length;
  }
}

/** Gives the lines of a piece as they are shown: the last line's end is no line of its own. */
export function shownLines(text: string): string[] {
  return text.replace(/\n$/, "").split("\n");
}
