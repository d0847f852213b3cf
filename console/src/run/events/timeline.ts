import type { RunwireEvent } from "@runwire/client";

/** A silence that is worth a mark, in milliseconds. */
export const silence = 1000;

/** Heights in pixels: rows of known height need no measuring, so half a million of them scroll like ten. */
export const rowHeight = 30;
export const gapHeight = 22;

/**
 * The rows of a timeline: events that pass a filter, and a thin mark wherever nothing happened for a while.
 * It grows with the events: what was looked at once is not looked at again.
 */
export class Timeline {
  /** Which event stands in each row; `~index` is the mark before event `index`. */
  readonly rows: number[] = [];
  /** Where each row begins, in pixels, and where the last one ends. */
  readonly tops: number[] = [0];
  /** How many events there are of each type, whether they are shown or not. */
  readonly counts = new Map<string, number>();
  /** How many events are shown. */
  shown = 0;
  readonly #matches: ((event: RunwireEvent) => boolean) | undefined;
  #taken = 0;
  #last = Number.NaN;

  constructor(matches: ((event: RunwireEvent) => boolean) | undefined) {
    this.#matches = matches;
  }

  /** Takes in the events that are new; stops early when `enough` says so, and tells whether all are in. */
  extend(events: readonly RunwireEvent[], enough: () => boolean = () => false): boolean {
    while (this.#taken < events.length) {
      // Asking the clock for every event would cost more than the event.
      if (this.#taken % 64 === 63 && enough()) {
        this.#take(events);
        return this.#taken === events.length;
      }
      this.#take(events);
    }
    return true;
  }

  /** Finds the row of an event; -1 if it is not shown. */
  rowOf(index: number): number {
    let [low, high] = [0, this.rows.length - 1];
    while (low <= high) {
      const middle = (low + high) >> 1;
      const here = this.rows[middle] ?? 0;
      if (here === index) return middle;
      if ((here < 0 ? ~here : here) < index || here === ~index) low = middle + 1;
      else high = middle - 1;
    }
    return -1;
  }

  /** Finds the nearest row with an event, from a row on, in a direction; -1 if there is none. */
  step(from: number, by: 1 | -1): number {
    for (let row = from; row >= 0 && row < this.rows.length; row += by) {
      if ((this.rows[row] ?? -1) >= 0) return row;
    }
    return -1;
  }

  #take(events: readonly RunwireEvent[]): void {
    const index = this.#taken++;
    const event = events[index];
    if (event === undefined) return;
    this.counts.set(event.type, (this.counts.get(event.type) ?? 0) + 1);
    if (this.#matches !== undefined && !this.#matches(event)) return;
    const at = Date.parse(event.at);
    if (at - this.#last >= silence) this.#push(~index, gapHeight);
    this.#last = at;
    this.shown++;
    this.#push(index, rowHeight);
  }

  #push(row: number, height: number): void {
    this.rows.push(row);
    this.tops.push((this.tops[this.tops.length - 1] ?? 0) + height);
  }
}

/** Finds the first row that ends below a height. */
export function rowAt(tops: readonly number[], y: number): number {
  let [low, high] = [0, tops.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((tops[middle + 1] ?? Infinity) > y) high = middle;
    else low = middle + 1;
  }
  return low;
}
