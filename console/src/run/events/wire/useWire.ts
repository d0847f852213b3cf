import { useEffect, useMemo, useRef, useSyncExternalStore } from "react";
import { connectionRestored } from "../../../client";
import type { Framing } from "../shellCommand";
import { AlignedRecords } from "./AlignedRecords";
import { readWire } from "./readWire";

/** Maximum number of characters of a side; the download has the rest. */
export const maxCharacters = 48_000_000;

/** State of one side. */
export interface SideState {
  isOver: boolean;
  /** Whether the stream exceeds the maximum length. */
  isTruncated: boolean;
  error?: unknown;
}

/** One or two raw streams, aligned by record. */
class WireStreams {
  readonly records = new AlignedRecords();
  readonly sides: [SideState, SideState] = [
    { isOver: false, isTruncated: false },
    { isOver: false, isTruncated: false },
  ];
  #version = 0;
  #isScheduled = false;
  readonly #listeners = new Set<() => void>();

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  readonly version = (): number => this.#version;

  /** Notifies the listeners at most once per 16 ms. */
  notify(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setTimeout(() => {
      this.#isScheduled = false;
      this.#version++;
      for (const listener of this.#listeners) listener();
    }, 16);
  }

  async read(side: 0 | 1, run: string, dialect: string, framing: Framing, signal: AbortSignal, isClosed: () => boolean): Promise<void> {
    const limitReached = new AbortController();
    const state = this.sides[side];
    try {
      await readWire({
        run,
        dialect,
        framing,
        isClosed,
        signal: AbortSignal.any([signal, limitReached.signal]),
        onFrames: (frames) => {
          if (signal.aborted || state.isTruncated) return;
          connectionRestored();
          this.records.add(side, frames);
          if (this.records.characters[side] > maxCharacters) {
            state.isTruncated = true;
            limitReached.abort();
          }
          this.notify();
        },
      });
      state.isOver = true;
    } catch (error) {
      if (signal.aborted) return;
      state.error = error;
    }
    this.notify();
  }
}

/** Reads a run as it is on the wire in one or two dialects. */
export function useWire(run: string, dialect: string, secondDialect: string | undefined, framing: Framing, isClosed: boolean, attempt: number) {
  const streams = useMemo(() => new WireStreams(), [run, dialect, secondDialect, framing, attempt]);
  const closed = useRef(isClosed);
  closed.current = isClosed;
  useEffect(() => {
    const abort = new AbortController();
    const hasEnded = () => closed.current;
    void streams.read(0, run, dialect, framing, abort.signal, hasEnded);
    if (secondDialect !== undefined) void streams.read(1, run, secondDialect, framing, abort.signal, hasEnded);
    return () => abort.abort();
  }, [streams, run, dialect, secondDialect, framing]);
  useSyncExternalStore(streams.subscribe, streams.version);
  return streams;
}
