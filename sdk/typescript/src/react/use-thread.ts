import { useMemo, useSyncExternalStore } from "react";
import type { Runwire } from "../client.js";
import type { RunwireEvent } from "../events.js";
import { RunView, type RunViewSnapshot } from "../fold/run-view.js";
import type { Interaction, NewAnswer, NewRun, Run } from "../generated.js";
import type { RunStream, StreamOptions } from "../stream/run-stream.js";
import { useRunwire } from "./context.js";
import { type SubscriptionState, Subscription } from "./subscription.js";
import { SubscriptionCache } from "./subscription-cache.js";

/** Result of `useThread`. */
export interface UseThreadResult extends SubscriptionState {
  /** The runs folded for display, in the order they started. */
  runs: readonly RunViewSnapshot[];
  /** The last run that has not ended. */
  openRun: RunViewSnapshot | undefined;
  /** Reconnects after an `error`. */
  refresh(): void;
  /** Starts a run in the thread; creates the thread if it is missing. */
  start(run: Omit<NewRun, "thread_id">): Promise<Run>;
  /** Requests the cancellation of a run. */
  cancel(run: string, reason?: string): Promise<Run>;
  /** Starts the same agent on the same input as the next run. */
  retry(run: string): Promise<Run>;
  /** Answers an interaction of a run. */
  answer(run: string, interaction: string, answer: NewAnswer): Promise<Interaction>;
}

type ThreadSnapshot = Omit<UseThreadResult, "refresh" | "start" | "cancel" | "retry" | "answer">;

class ThreadSubscription extends Subscription<ThreadSnapshot> {
  readonly #client: Runwire;
  readonly #id: string;
  readonly #after: string | undefined;
  readonly #views = new Map<string, RunView>();

  constructor(client: Runwire, id: string, after: string | undefined) {
    super();
    this.#client = client;
    this.#id = id;
    this.#after = after;
  }

  protected override open(options: StreamOptions): RunStream<RunwireEvent> {
    return this.#client.threads.stream(this.#id, { after: this.#after, ...options });
  }

  protected override apply(event: RunwireEvent): void {
    let view = this.#views.get(event.run_id);
    if (view === undefined) this.#views.set(event.run_id, (view = new RunView(event.run_id)));
    view.apply(event);
  }

  protected override buildSnapshot(state: SubscriptionState): ThreadSnapshot {
    const runs = [...this.#views.values()].map((view) => view.snapshot());
    return { ...state, runs, openRun: runs.findLast((run) => run.endedAt === undefined) };
  }
}

const THREADS = new SubscriptionCache((client, id, after) => new ThreadSubscription(client, id, after));

/** Streams all runs of a thread, including later ones. */
export function useThread(id: string, options: { after?: string | undefined } = {}): UseThreadResult {
  const client = useRunwire();
  const subscription = useMemo(() => THREADS.get(client, id, options.after), [client, id, options.after]);
  const snapshot = useSyncExternalStore(subscription.subscribe, subscription.snapshot, subscription.snapshot);
  const actions = useMemo(
    () => ({
      refresh: subscription.refresh,
      start: async (run: Omit<NewRun, "thread_id">) => {
        const started = await client.runs.create({ ...run, thread_id: id });
        subscription.refresh();
        return started;
      },
      cancel: (run: string, reason?: string) => client.runs.cancel(run, reason),
      retry: (run: string) => client.runs.retry(run),
      answer: (run: string, interaction: string, answer: NewAnswer) => client.interactions.answer(run, interaction, answer),
    }),
    [client, id, subscription],
  );
  return useMemo(() => ({ ...snapshot, ...actions }), [snapshot, actions]);
}
