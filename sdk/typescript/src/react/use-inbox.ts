import { useCallback, useMemo } from "react";
import type { Interaction, NewAnswer } from "../generated.js";
import type { InteractionFilter } from "../resources/types.js";
import { useRunwire } from "./context.js";
import { usePolling } from "./polling.js";

/** What waits for a person. */
export interface Inbox {
  /** The open questions, newest first. */
  interactions: readonly Interaction[];
  /** Where older ones begin, as `before`. */
  next: string | undefined;
  error: Error | undefined;
  isLoading: boolean;
  refresh(): Promise<void>;
  /** Answers a question, and looks at the inbox again. */
  answer(run: string, interaction: string, answer: NewAnswer): Promise<Interaction>;
}

const NONE: readonly Interaction[] = [];

/** Watches what waits for a person, over all runs; `every` is in milliseconds, 2,000 without it. */
export function useInbox(filter: InteractionFilter = {}, options: { every?: number } = {}): Inbox {
  const client = useRunwire();
  const { data, error, isLoading, refresh } = usePolling(
    JSON.stringify(filter),
    (signal) => client.interactions.list(filter, signal),
    options.every ?? 2000,
  );
  const answer = useCallback(
    async (run: string, interaction: string, answered: NewAnswer) => {
      try {
        return await client.interactions.answer(run, interaction, answered);
      } finally {
        void refresh();
      }
    },
    [client, refresh],
  );
  return useMemo(
    () => ({ interactions: data?.interactions ?? NONE, next: data?.next ?? undefined, error, isLoading, refresh, answer }),
    [data, error, isLoading, refresh, answer],
  );
}

/** One question. */
export interface WatchedInteraction {
  /** The question; nothing until it has come. */
  interaction: Interaction | undefined;
  error: Error | undefined;
  isLoading: boolean;
  refresh(): Promise<void>;
  /** Answers it. */
  answer(answer: NewAnswer): Promise<Interaction>;
}

/** Watches one question, also after it was answered by somebody else. */
export function useInteraction(run: string, id: string, options: { every?: number } = {}): WatchedInteraction {
  const client = useRunwire();
  const { data, error, isLoading, refresh } = usePolling(
    JSON.stringify([run, id]),
    () => client.interactions.get(run, id),
    options.every ?? 2000,
  );
  const answer = useCallback(
    async (answered: NewAnswer) => {
      try {
        return await client.interactions.answer(run, id, answered);
      } finally {
        void refresh();
      }
    },
    [client, run, id, refresh],
  );
  return useMemo(() => ({ interaction: data, error, isLoading, refresh, answer }), [data, error, isLoading, refresh, answer]);
}
