import { useEffect, useMemo, useRef, useSyncExternalStore } from "react";
import { connectionRestored } from "../../../client";
import type { Framing } from "../command";
import { Aligned } from "./align";
import { readWire } from "./read";

/** Characters that a side may hold; what comes after them is left to the download. */
export const mostCharacters = 48_000_000;

/** How the reading of one side stands. */
export interface SideState {
  isOver: boolean;
  /** Whether there is more than is kept. */
  isCut: boolean;
  error?: unknown;
}

/** What was read of one or two streams, side by side. */
class Wires {
  readonly aligned = new Aligned();
  readonly sides: [SideState, SideState] = [
    { isOver: false, isCut: false },
    { isOver: false, isCut: false },
  ];
  #version = 0;
  #isAsked = false;
  readonly #listeners = new Set<() => void>();

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  readonly version = (): number => this.#version;

  /** Tells at most once a frame that something has come. */
  changed(): void {
    if (this.#isAsked) return;
    this.#isAsked = true;
    setTimeout(() => {
      this.#isAsked = false;
      this.#version++;
      for (const listener of this.#listeners) listener();
    }, 16);
  }

  async read(side: 0 | 1, run: string, dialect: string, framing: Framing, signal: AbortSignal, isClosed: () => boolean): Promise<void> {
    const full = new AbortController();
    const state = this.sides[side];
    try {
      await readWire({
        run,
        dialect,
        framing,
        isClosed,
        signal: AbortSignal.any([signal, full.signal]),
        take: (pieces) => {
          if (signal.aborted || state.isCut) return;
          connectionRestored();
          this.aligned.add(side, pieces);
          if (this.aligned.characters[side] > mostCharacters) {
            state.isCut = true;
            full.abort();
          }
          this.changed();
        },
      });
      state.isOver = true;
    } catch (error) {
      if (signal.aborted) return;
      state.error = error;
    }
    this.changed();
  }
}

/** Reads a run as it is on the wire in one dialect, or in two beside each other. */
export function useWire(run: string, dialect: string, beside: string | undefined, framing: Framing, isClosed: boolean, attempt: number) {
  const wires = useMemo(() => new Wires(), [run, dialect, beside, framing, attempt]);
  const closed = useRef(isClosed);
  closed.current = isClosed;
  useEffect(() => {
    const abort = new AbortController();
    const over = () => closed.current;
    void wires.read(0, run, dialect, framing, abort.signal, over);
    if (beside !== undefined) void wires.read(1, run, beside, framing, abort.signal, over);
    return () => abort.abort();
  }, [wires, run, dialect, beside, framing]);
  useSyncExternalStore(wires.subscribe, wires.version);
  return wires;
}
