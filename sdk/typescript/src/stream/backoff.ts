import type { RetryOptions } from "../http.js";

/** Longest delay in milliseconds that a server can ask for. */
const MAX_REQUESTED_DELAY = 60_000;

/** Exponential backoff with jitter. */
export class Backoff {
  readonly #retry: RetryOptions;
  #next: number;

  constructor(retry: RetryOptions) {
    this.#retry = retry;
    this.#next = retry.initialDelay;
  }

  /** Returns the delay before the next attempt, at least what the server asked for. */
  next(requested = 0): number {
    // Half of the delay is random, so that the readers of one server do not all reconnect at once.
    const delay = this.#next * (0.5 + Math.random() / 2);
    this.#next = Math.min(this.#next * 2, this.#retry.maxDelay);
    return Math.max(delay, Math.min(requested, MAX_REQUESTED_DELAY));
  }

  /** Starts again with the initial delay. */
  reset(): void {
    this.#next = this.#retry.initialDelay;
  }
}

/** Waits until the time is over, the signal is aborted or the network is back. */
export function pause(millis: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      // Only browsers have this event.
      globalThis.removeEventListener?.("online", done);
      resolve();
    };
    const timer = setTimeout(done, millis);
    signal.addEventListener("abort", done, { once: true });
    globalThis.addEventListener?.("online", done);
    if (signal.aborted) done();
  });
}
