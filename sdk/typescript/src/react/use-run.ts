import { useMemo, useSyncExternalStore } from "react";
import type { Runwire } from "../client.js";
import type { RunwireEvent } from "../events.js";
import { MessageFold } from "../fold/message-fold.js";
import { RunView, type RunViewSnapshot } from "../fold/run-view.js";
import type { Interaction, MessageState, NewAnswer, Run, RunStatus } from "../generated.js";
import type { RunStream, StreamOptions } from "../stream/run-stream.js";
import { useRunwire } from "./context.js";
import { type SubscriptionState, Subscription } from "./subscription.js";
import { SubscriptionCache } from "./subscription-cache.js";

/** Result of `useRun`. */
export interface UseRunResult extends SubscriptionState {
  /** Status of the run. */
  status: RunStatus;
  /** The run folded into one message. */
  message: MessageState;
  /** The run folded for display. */
  view: RunViewSnapshot;
  /** All events so far: always the same array, which grows; `version` changes with it. */
  events: readonly RunwireEvent[];
  /** Reconnects after an `error`, for example once a missing run exists. */
  refresh(): void;
  /** Requests the cancellation of the run. */
  cancel(reason?: string): Promise<Run>;
  /** Starts the same agent on the same input as a new run. */
  retry(): Promise<Run>;
  /** Answers an interaction of the run. */
  answer(interaction: string, answer: NewAnswer): Promise<Interaction>;
}

type RunSnapshot = Omit<UseRunResult, "refresh" | "cancel" | "retry" | "answer">;

class RunSubscription extends Subscription<RunSnapshot> {
  readonly #client: Runwire;
  readonly #id: string;
  readonly #after: string | undefined;
  readonly #view: RunView;
  readonly #message: MessageFold;
  readonly #events: RunwireEvent[] = [];

  constructor(client: Runwire, id: string, after: string | undefined) {
    super();
    this.#client = client;
    this.#id = id;
    this.#after = after;
    this.#view = new RunView(id);
    this.#message = new MessageFold(id);
  }

  protected override open(options: StreamOptions): RunStream<RunwireEvent> {
    return this.#client.runs.stream(this.#id, { after: this.#after, ...options });
  }

  protected override apply(event: RunwireEvent): void {
    this.#events.push(event);
    this.#view.apply(event);
    this.#message.apply(event, Date.parse(event.at));
  }

  protected override buildSnapshot(state: SubscriptionState): RunSnapshot {
    const view = this.#view.snapshot();
    return { ...state, status: view.status, view, message: this.#message.snapshot(), events: this.#events };
  }
}

const RUNS = new SubscriptionCache((client, id, after) => new RunSubscription(client, id, after));

/** Streams a run from its start, or from after a cursor, to its end. */
export function useRun(id: string, options: { after?: string | undefined } = {}): UseRunResult {
  const client = useRunwire();
  const subscription = useMemo(() => RUNS.get(client, id, options.after), [client, id, options.after]);
  const snapshot = useSyncExternalStore(subscription.subscribe, subscription.snapshot, subscription.snapshot);
  const actions = useMemo(
    () => ({
      refresh: subscription.refresh,
      cancel: (reason?: string) => client.runs.cancel(id, reason),
      retry: () => client.runs.retry(id),
      answer: (interaction: string, answer: NewAnswer) => client.interactions.answer(id, interaction, answer),
    }),
    [client, id, subscription],
  );
  return useMemo(() => ({ ...snapshot, ...actions }), [snapshot, actions]);
}
