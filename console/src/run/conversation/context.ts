import type { RunStep } from "@runwire/client";
import { createContext, use, useState } from "react";

/** What every part of a conversation may need of it. */
export interface Reading {
  runId: string;
  threadId: string;
  agent: string | null;
  /** What a person opened or closed, by the part's id; it outlives the part's being out of sight. */
  choices: Map<string, boolean>;
  /** Parts that were there when they were first seen, or were shown before: they come without a transition. */
  seen: Set<string>;
  steps: ReadonlyMap<string, RunStep>;
  isRetrying: boolean;
  /** Starts the run again; nothing where nobody can. */
  onRetry: (() => void) | undefined;
}

export const ReadingContext = createContext<Reading | null>(null);

/** Gives the conversation that a part is in. */
export function useReading(): Reading {
  const reading = use(ReadingContext);
  if (reading === null) throw new Error("useReading outside of a conversation");
  return reading;
}

/** Holds whether a part is open: by itself, until a person chooses. */
export function useFold(id: string, byItself: boolean): { open: boolean; toggle: () => void } {
  const { choices } = useReading();
  const [, redraw] = useState(0);
  const open = choices.get(id) ?? byItself;
  const toggle = () => {
    choices.set(id, !open);
    redraw((times) => times + 1);
  };
  return { open, toggle };
}

/** Tells whether a part appears for the first time, as it happens. */
export function useFresh(id: string): boolean {
  const { seen } = useReading();
  const [isFresh] = useState(() => !seen.has(id));
  seen.add(id);
  return isFresh;
}
