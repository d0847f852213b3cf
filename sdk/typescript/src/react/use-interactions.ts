import { useCallback, useMemo } from "react";
import type { Interaction, NewAnswer } from "../generated.js";
import type { InteractionFilter } from "../resources/types.js";
import { useRunwire } from "./context.js";
import { usePolling } from "./polling.js";

/** Result of `useInteractions`. */
export interface UseInteractionsResult {
  /** The open interactions, newest first. */
  interactions: readonly Interaction[];
  /** Cursor of the next page, for `before`. */
  next: string | undefined;
  error: Error | undefined;
  isLoading: boolean;
  refresh(): Promise<void>;
  /** Answers an interaction and refreshes the list. */
  answer(run: string, interaction: string, answer: NewAnswer): Promise<Interaction>;
}

const NO_INTERACTIONS: readonly Interaction[] = [];

/** Polls the open interactions of all runs; `interval` is in milliseconds. Default: 2,000. */
export function useInteractions(filter: InteractionFilter = {}, options: { interval?: number } = {}): UseInteractionsResult {
  const client = useRunwire();
  const { data, error, isLoading, refresh } = usePolling(
    JSON.stringify(filter),
    (signal) => client.interactions.list(filter, signal),
    options.interval ?? 2000,
  );
  const answer = useCallback(
    async (run: string, interaction: string, newAnswer: NewAnswer) => {
      try {
        return await client.interactions.answer(run, interaction, newAnswer);
      } finally {
        void refresh();
      }
    },
    [client, refresh],
  );
  return useMemo(
    () => ({ interactions: data?.interactions ?? NO_INTERACTIONS, next: data?.next ?? undefined, error, isLoading, refresh, answer }),
    [data, error, isLoading, refresh, answer],
  );
}

/** Result of `useInteraction`. */
export interface UseInteractionResult {
  /** The interaction; undefined until it is loaded. */
  interaction: Interaction | undefined;
  error: Error | undefined;
  isLoading: boolean;
  refresh(): Promise<void>;
  /** Answers the interaction. */
  answer(answer: NewAnswer): Promise<Interaction>;
}

/** Polls one interaction, open or resolved. */
export function useInteraction(run: string, id: string, options: { interval?: number } = {}): UseInteractionResult {
  const client = useRunwire();
  const { data, error, isLoading, refresh } = usePolling(
    JSON.stringify([run, id]),
    () => client.interactions.get(run, id),
    options.interval ?? 2000,
  );
  const answer = useCallback(
    async (newAnswer: NewAnswer) => {
      try {
        return await client.interactions.answer(run, id, newAnswer);
      } finally {
        void refresh();
      }
    },
    [client, run, id, refresh],
  );
  return useMemo(() => ({ interaction: data, error, isLoading, refresh, answer }), [data, error, isLoading, refresh, answer]);
}
