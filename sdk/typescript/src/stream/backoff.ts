import type { Patience } from "../http.js";

/** The longest wait that a server may ask for. */
const LONGEST_ASKED = 60_000;

/** Counts how long to wait before the next attempt: longer each time, and never the same for two readers. */
export class Backoff {
  readonly #patience: Patience;
  #next: number;

  constructor(patience: Patience) {
    this.#patience = patience;
    this.#next = patience.shortestWait;
  }

  /** Tells how long to wait now; a server that asks for a longer wait gets it. */
  next(asked = 0): number {
    // Half of it is left to chance, so that readers of one server do not all come back at once.
    const wait = this.#next * (0.5 + Math.random() / 2);
    this.#next = Math.min(this.#next * 2, this.#patience.longestWait);
    return Math.max(wait, Math.min(asked, LONGEST_ASKED));
  }

  /** Begins anew: something went well. */
  reset(): void {
    this.#next = this.#patience.shortestWait;
  }
}

/** Waits, but no longer than until the signal says stop or the network is back. */
export function pause(millis: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      // Only browsers tell when the network is back.
      globalThis.removeEventListener?.("online", done);
      resolve();
    };
    const timer = setTimeout(done, millis);
    signal.addEventListener("abort", done, { once: true });
    globalThis.addEventListener?.("online", done);
    if (signal.aborted) done();
  });
}
