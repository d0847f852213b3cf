/** The longest that one task works on events, in milliseconds; a page that scrolls needs the rest of its frame. */
const SLICE = 8;

/** Lets the browser do something else now and then while events are worked on. */
export class Slices {
  #since = performance.now();

  /** Tells whether it is time for something else; then `pause` is to be awaited. */
  get isOver(): boolean {
    return performance.now() - this.#since > SLICE;
  }

  async pause(): Promise<void> {
    await nextTask();
    this.#since = performance.now();
  }
}

function nextTask(): Promise<void> {
  return new Promise((resolve) => {
    // Timers that call themselves are slowed down by browsers; messages are not.
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(undefined);
  });
}

/** Calls a function at most once per animation frame. */
export class Frames {
  readonly #call: () => void;
  #isAsked = false;

  constructor(call: () => void) {
    this.#call = call;
  }

  /** Asks for a call in the next frame. */
  ask(): void {
    if (this.#isAsked) return;
    this.#isAsked = true;
    const call = (): void => {
      this.#isAsked = false;
      this.#call();
    };
    // A page that is not seen gets no frames.
    const isSeen = typeof requestAnimationFrame === "function" && (typeof document === "undefined" || !document.hidden);
    if (isSeen) requestAnimationFrame(call);
    else setTimeout(call, 50);
  }
}
