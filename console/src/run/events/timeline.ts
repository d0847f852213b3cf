import type { RunwireEvent } from "@runwire/client";

/** Minimum duration of a gap that gets a row, in milliseconds. */
export const gapThreshold = 1000;

/** Row heights in pixels: fixed, so that nothing has to be measured. */
export const rowHeight = 30;
export const gapHeight = 22;

/**
 * The rows of a timeline: events that match a filter, and gaps between them. It is extended incrementally: each event
 * is matched once.
 */
export class Timeline {
  /** Event index of each row; `~index` is the gap before event `index`. */
  readonly rows: number[] = [];
  /** Top of each row in pixels, and the bottom of the last one. */
  readonly tops: number[] = [0];
  /** Number of events of each type, including filtered ones. */
  readonly counts = new Map<string, number>();
  /** Number of events that match. */
  matchCount = 0;
  readonly #matches: ((event: RunwireEvent) => boolean) | undefined;
  #added = 0;
  #lastTime = Number.NaN;

  constructor(matches: ((event: RunwireEvent) => boolean) | undefined) {
    this.#matches = matches;
  }

  /** Adds new events; stops early if `shouldStop` returns true. Returns true if all are added. */
  extend(events: readonly RunwireEvent[], shouldStop: () => boolean = () => false): boolean {
    while (this.#added < events.length) {
      // Checking the clock for every event would cost more than the event.
      if (this.#added % 64 === 63 && shouldStop()) {
        this.#addNext(events);
        return this.#added === events.length;
      }
      this.#addNext(events);
    }
    return true;
  }

  /** Returns the row of an event; -1 if it is filtered out. */
  rowOf(index: number): number {
    let [low, high] = [0, this.rows.length - 1];
    while (low <= high) {
      const middle = (low + high) >> 1;
      const value = this.rows[middle] ?? 0;
      if (value === index) return middle;
      if ((value < 0 ? ~value : value) < index || value === ~index) low = middle + 1;
      else high = middle - 1;
    }
    return -1;
  }

  /** Returns the nearest row with an event in a direction; -1 if there is none. */
  nextEventRow(from: number, by: 1 | -1): number {
    for (let row = from; row >= 0 && row < this.rows.length; row += by) {
      if ((this.rows[row] ?? -1) >= 0) return row;
    }
    return -1;
  }

  #addNext(events: readonly RunwireEvent[]): void {
    const index = this.#added++;
    const event = events[index];
    if (event === undefined) return;
    this.counts.set(event.type, (this.counts.get(event.type) ?? 0) + 1);
    if (this.#matches !== undefined && !this.#matches(event)) return;
    const at = Date.parse(event.at);
    if (at - this.#lastTime >= gapThreshold) this.#push(~index, gapHeight);
    this.#lastTime = at;
    this.matchCount++;
    this.#push(index, rowHeight);
  }

  #push(row: number, height: number): void {
    this.rows.push(row);
    this.tops.push((this.tops[this.tops.length - 1] ?? 0) + height);
  }
}

/** Returns the first row that ends below `y`. */
export function rowAt(tops: readonly number[], y: number): number {
  let [low, high] = [0, tops.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((tops[middle + 1] ?? Infinity) > y) high = middle;
    else low = middle + 1;
  }
  return low;
}
