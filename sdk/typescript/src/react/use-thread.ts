import { useMemo, useSyncExternalStore } from "react";
import type { Runwire } from "../client.js";
import type { RunwireEvent } from "../events.js";
import { RunView, type RunViewSnapshot } from "../fold/view.js";
import type { Interaction, NewAnswer, NewRun, Run } from "../generated.js";
import type { RunStream, StreamOptions } from "../stream/stream.js";
import { useRunwire } from "./context.js";
import { type Connection, Reading } from "./reading.js";
import { Shared } from "./shared.js";

/** A thread that is watched. */
export interface WatchedThread extends Connection {
  /** Its runs as a person reads them, in the order they began. */
  runs: readonly RunViewSnapshot[];
  /** The run that is open, or nothing. */
  openRun: RunViewSnapshot | undefined;
  /** Reads again after an `error`. */
  refresh(): void;
  /** Starts the next run in the thread, and with it the thread if there was none. */
  start(run: Omit<NewRun, "thread_id">): Promise<Run>;
  /** Asks a run of the thread to stop. */
  stop(run: string, reason?: string): Promise<Run>;
  /** Starts the same agent on the same input as the next run. */
  retry(run: string): Promise<Run>;
  /** Answers a question of a run. */
  answer(run: string, interaction: string, answer: NewAnswer): Promise<Interaction>;
}

type Seen = Omit<WatchedThread, "refresh" | "start" | "stop" | "retry" | "answer">;

class ThreadReading extends Reading<Seen> {
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

  protected override take(event: RunwireEvent): void {
    let view = this.#views.get(event.run_id);
    if (view === undefined) this.#views.set(event.run_id, (view = new RunView(event.run_id)));
    view.apply(event);
  }

  protected override gather(connection: Connection): Seen {
    const runs = [...this.#views.values()].map((view) => view.snapshot());
    return { ...connection, runs, openRun: runs.findLast((run) => run.endedAt === undefined) };
  }
}

const THREADS = new Shared((client, id, after) => new ThreadReading(client, id, after));

/** Watches a thread: all its runs, one after the other, and those to come. */
export function useThread(id: string, options: { after?: string | undefined } = {}): WatchedThread {
  const client = useRunwire();
  const reading = useMemo(() => THREADS.get(client, id, options.after), [client, id, options.after]);
  const seen = useSyncExternalStore(reading.subscribe, reading.snapshot, reading.snapshot);
  const acts = useMemo(
    () => ({
      refresh: reading.refresh,
      start: async (run: Omit<NewRun, "thread_id">) => {
        const started = await client.runs.create({ ...run, thread_id: id });
        reading.refresh();
        return started;
      },
      stop: (run: string, reason?: string) => client.runs.cancel(run, reason),
      retry: (run: string) => client.runs.retry(run),
      answer: (run: string, interaction: string, answer: NewAnswer) => client.interactions.answer(run, interaction, answer),
    }),
    [client, id, reading],
  );
  return useMemo(() => ({ ...seen, ...acts }), [seen, acts]);
}
