import { type RunwireError } from "../errors.js";
import { isCaughtUp, type RunwireEvent } from "../events.js";
import type { RunStream, StreamOptions, StreamStatus } from "../stream/run-stream.js";
import { FrameThrottle, TimeSlice } from "./scheduling.js";

/** Milliseconds that a stream stays open without listeners: a component that remounts at once reuses the connection. */
const CLOSE_DELAY = 500;

/** State of the stream behind a hook. */
export interface SubscriptionState {
  /** Status of the stream. */
  connection: StreamStatus;
  /** Whether all stored events have been read. */
  isCaughtUp: boolean;
  /** The error that interrupted the stream, while it waits to reconnect. */
  interruption: RunwireError | undefined;
  /** The error that ended the stream. */
  error: Error | undefined;
  /** Incremented with every change. */
  version: number;
}

/** Reads a stream while it has listeners, and notifies them at most once per animation frame. */
export abstract class Subscription<S> {
  readonly #listeners = new Set<() => void>();
  readonly #throttle = new FrameThrottle(() => this.#notify());
  #cursor: string | undefined;
  #abort: AbortController | undefined;
  #closeTimer: ReturnType<typeof setTimeout> | undefined;
  #hasEnded = false;
  /** Whether `refresh` was called while a request was in flight. */
  #isRefreshRequested = false;
  #cached: S | undefined;
  #state: SubscriptionState = { connection: "connecting", isCaughtUp: false, interruption: undefined, error: undefined, version: 0 };

  /** Opens the stream. */
  protected abstract open(options: StreamOptions): RunStream<RunwireEvent>;

  /** Applies an event. */
  protected abstract apply(event: RunwireEvent): void;

  /** Builds the snapshot that the hook returns. */
  protected abstract buildSnapshot(connection: SubscriptionState): S;

  /** Whether a component is subscribed. */
  get hasListeners(): boolean {
    return this.#listeners.size > 0;
  }

  /** Adds a listener; returns the function that removes it. */
  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    clearTimeout(this.#closeTimer);
    if (this.#abort === undefined && !this.#hasEnded) void this.#read();
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size > 0) return;
      clearTimeout(this.#closeTimer);
      this.#closeTimer = setTimeout(() => this.#close(), CLOSE_DELAY);
    };
  };

  /** Returns the snapshot: the same object until something changes. */
  readonly snapshot = (): S => {
    this.#cached ??= this.buildSnapshot(this.#state);
    return this.#cached;
  };

  /** Reconnects after an error, including one of the request in flight; otherwise does nothing. */
  readonly refresh = (): void => {
    if (this.#abort !== undefined) this.#isRefreshRequested = true;
    else if (this.#state.error !== undefined && this.hasListeners) void this.#read();
  };

  #close(): void {
    if (this.#listeners.size > 0) return;
    this.#abort?.abort();
    this.#abort = undefined;
  }

  async #read(): Promise<void> {
    const abort = new AbortController();
    const { signal } = abort;
    this.#abort = abort;
    this.#isRefreshRequested = false;
    const timeSlice = new TimeSlice();
    if (this.#state.error !== undefined) this.#update({ error: undefined, connection: "connecting" });
    const onStatus = (status: StreamStatus, detail?: RunwireError): void => {
      if (signal.aborted) return;
      if (status === "catching-up") this.#isRefreshRequested = false;
      this.#update({ connection: status, interruption: status === "waiting" ? detail : undefined });
    };
    try {
      // Resume after the last event that was applied.
      const stream = this.open({ ...(this.#cursor !== undefined && { after: this.#cursor }), signal, onStatus });
      for await (const event of stream) {
        if (signal.aborted) return;
        this.#cursor = stream.cursor;
        if (isCaughtUp(event)) this.#update({ isCaughtUp: true });
        else {
          this.apply(event);
          this.#update({});
        }
        if (timeSlice.isExpired) await timeSlice.yield();
      }
      if (signal.aborted) return;
      this.#hasEnded = true;
      this.#update({ isCaughtUp: true });
    } catch (error) {
      if (signal.aborted) return;
      this.#abort = undefined;
      if (this.#isRefreshRequested && this.hasListeners) return void this.#read();
      this.#update({ error: error instanceof Error ? error : new Error(String(error)) });
    }
  }

  #update(changes: Partial<SubscriptionState>): void {
    this.#state = { ...this.#state, ...changes, version: this.#state.version + 1 };
    this.#throttle.schedule();
  }

  #notify(): void {
    this.#cached = undefined;
    for (const listener of this.#listeners) listener();
  }
}
