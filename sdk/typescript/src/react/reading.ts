import { type RunwireError } from "../errors.js";
import { isCaughtUp, type RunwireEvent } from "../events.js";
import type { RunStream, StreamOptions, StreamStatus } from "../stream/stream.js";
import { Frames, Slices } from "./frames.js";

/** How long a stream is kept that nobody looks at: a component that comes back at once costs no connection. */
const LINGER = 500;

/** How a stream that is watched stands. */
export interface Connection {
  /** How the stream stands. */
  connection: StreamStatus;
  /** Whether everything that was there has been read. */
  isCaughtUp: boolean;
  /** Why the stream waits, while it does. */
  interruption: RunwireError | undefined;
  /** Why the stream was given up. */
  error: Error | undefined;
  /** Grows with every change. */
  version: number;
}

/** Reads a stream while somebody looks, and tells once per frame that something has come. */
export abstract class Reading<S> {
  readonly #listeners = new Set<() => void>();
  readonly #frames = new Frames(() => this.#tell());
  #cursor: string | undefined;
  #abort: AbortController | undefined;
  #leaving: ReturnType<typeof setTimeout> | undefined;
  #hasEnded = false;
  /** Whether somebody asked to read again while the answer to the last request was still on its way. */
  #isAskedAgain = false;
  #shown: S | undefined;
  #state: Connection = { connection: "connecting", isCaughtUp: false, interruption: undefined, error: undefined, version: 0 };

  /** Opens the stream. */
  protected abstract open(options: StreamOptions): RunStream<RunwireEvent>;

  /** Takes in an event. */
  protected abstract take(event: RunwireEvent): void;

  /** Gives what is shown. */
  protected abstract gather(connection: Connection): S;

  /** Whether somebody looks. */
  get isWatched(): boolean {
    return this.#listeners.size > 0;
  }

  /** Begins to look; what is returned ends it. */
  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    clearTimeout(this.#leaving);
    if (this.#abort === undefined && !this.#hasEnded) void this.#read();
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size > 0) return;
      clearTimeout(this.#leaving);
      this.#leaving = setTimeout(() => this.#leave(), LINGER);
    };
  };

  /** Gives what there is: the same object until it changes. */
  readonly snapshot = (): S => {
    this.#shown ??= this.gather(this.#state);
    return this.#shown;
  };

  /** Reads again after an error, or if the request that is under way ends in one; else nothing happens. */
  readonly refresh = (): void => {
    if (this.#abort !== undefined) this.#isAskedAgain = true;
    else if (this.#state.error !== undefined && this.isWatched) void this.#read();
  };

  #leave(): void {
    if (this.#listeners.size > 0) return;
    this.#abort?.abort();
    this.#abort = undefined;
  }

  async #read(): Promise<void> {
    const abort = new AbortController();
    const { signal } = abort;
    this.#abort = abort;
    this.#isAskedAgain = false;
    const slices = new Slices();
    if (this.#state.error !== undefined) this.#change({ error: undefined, connection: "connecting" });
    const onStatus = (status: StreamStatus, detail?: RunwireError): void => {
      if (signal.aborted) return;
      if (status === "catching-up") this.#isAskedAgain = false;
      this.#change({ connection: status, interruption: status === "waiting" ? detail : undefined });
    };
    try {
      // What was read before is not asked for again.
      const stream = this.open({ ...(this.#cursor !== undefined && { after: this.#cursor }), signal, onStatus });
      for await (const event of stream) {
        if (signal.aborted) return;
        this.#cursor = stream.cursor;
        if (isCaughtUp(event)) this.#change({ isCaughtUp: true });
        else {
          this.take(event);
          this.#change({});
        }
        if (slices.isOver) await slices.pause();
      }
      if (signal.aborted) return;
      this.#hasEnded = true;
      this.#change({ isCaughtUp: true });
    } catch (error) {
      if (signal.aborted) return;
      this.#abort = undefined;
      if (this.#isAskedAgain && this.isWatched) return void this.#read();
      this.#change({ error: error instanceof Error ? error : new Error(String(error)) });
    }
  }

  #change(changes: Partial<Connection>): void {
    this.#state = { ...this.#state, ...changes, version: this.#state.version + 1 };
    this.#frames.ask();
  }

  #tell(): void {
    this.#shown = undefined;
    for (const listener of this.#listeners) listener();
  }
}
