/** Longest time in milliseconds that one task handles events; a scrolling page needs the rest of its animation frame. */
const SLICE_MS = 8;

/** Yields to the browser's event loop at intervals while many events are handled. */
export class TimeSlice {
  #since = performance.now();

  /** Whether the time is used up; then `yield` has to be awaited. */
  get isExpired(): boolean {
    return performance.now() - this.#since > SLICE_MS;
  }

  async yield(): Promise<void> {
    await yieldToEventLoop();
    this.#since = performance.now();
  }
}

function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => {
    // Browsers throttle nested timers, but not messages.
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(undefined);
  });
}

/** Calls a function at most once per animation frame. */
export class FrameThrottle {
  readonly #call: () => void;
  #isScheduled = false;

  constructor(call: () => void) {
    this.#call = call;
  }

  /** Schedules a call in the next animation frame. */
  schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    const call = (): void => {
      this.#isScheduled = false;
      this.#call();
    };
    // A hidden page gets no animation frames.
    const isVisible = typeof requestAnimationFrame === "function" && (typeof document === "undefined" || !document.hidden);
    if (isVisible) requestAnimationFrame(call);
    else setTimeout(call, 50);
  }
}
