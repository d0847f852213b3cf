import { useMemo, useSyncExternalStore } from "react";
import type { Runwire } from "../client.js";
import type { RunwireEvent } from "../events.js";
import { MessageFold } from "../fold/message.js";
import { RunView, type RunViewSnapshot } from "../fold/view.js";
import type { Interaction, MessageState, NewAnswer, Run, RunStatus } from "../generated.js";
import type { RunStream, StreamOptions } from "../stream/stream.js";
import { useRunwire } from "./context.js";
import { type Connection, Reading } from "./reading.js";
import { Shared } from "./shared.js";

/** A run that is watched. */
export interface WatchedRun extends Connection {
  /** How far the run is. */
  status: RunStatus;
  /** The run as one message. */
  message: MessageState;
  /** The run as a person reads it. */
  view: RunViewSnapshot;
  /** Every event so far: always the same array, which grows; `version` tells that it has. */
  events: readonly RunwireEvent[];
  /** Reads again after an `error`, for instance a run that did not exist yet. */
  refresh(): void;
  /** Asks the run to stop. */
  stop(reason?: string): Promise<Run>;
  /** Starts the same agent on the same input as a new run. */
  retry(): Promise<Run>;
  /** Answers a question of the run. */
  answer(interaction: string, answer: NewAnswer): Promise<Interaction>;
}

type Seen = Omit<WatchedRun, "refresh" | "stop" | "retry" | "answer">;

class RunReading extends Reading<Seen> {
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

  protected override take(event: RunwireEvent): void {
    this.#events.push(event);
    this.#view.apply(event);
    this.#message.apply(event, Date.parse(event.at));
  }

  protected override gather(connection: Connection): Seen {
    const view = this.#view.snapshot();
    return { ...connection, status: view.status, view, message: this.#message.snapshot(), events: this.#events };
  }
}

const RUNS = new Shared((client, id, after) => new RunReading(client, id, after));

/** Watches a run: from its start, or after a cursor, to its end, over reloads and restarts. */
export function useRun(id: string, options: { after?: string | undefined } = {}): WatchedRun {
  const client = useRunwire();
  const reading = useMemo(() => RUNS.get(client, id, options.after), [client, id, options.after]);
  const seen = useSyncExternalStore(reading.subscribe, reading.snapshot, reading.snapshot);
  const acts = useMemo(
    () => ({
      refresh: reading.refresh,
      stop: (reason?: string) => client.runs.cancel(id, reason),
      retry: () => client.runs.retry(id),
      answer: (interaction: string, answer: NewAnswer) => client.interactions.answer(id, interaction, answer),
    }),
    [client, id, reading],
  );
  return useMemo(() => ({ ...seen, ...acts }), [seen, acts]);
}
