import type { Dialect, EventOf } from "../events.js";
import type { Beat, MessageState, NewRun, Producer, Run, RunList, Written } from "../generated.js";
import type { Http } from "../http.js";
import { RunStream, type StreamOptions } from "../stream/run-stream.js";
import type { FramePage, OpenOptions, PageOptions, RunFilter, WriteOptions } from "./types.js";
import { write } from "./write.js";

/** API of runs. */
export class Runs {
  readonly #http: Http;

  constructor(http: Http) {
    this.#http = http;
  }

  /** Streams the events of a run; resumes after broken connections. */
  stream<D extends Dialect = "runwire">(id: string, options?: StreamOptions<D>): RunStream<EventOf<D>> {
    return new RunStream(this.#http, ["v1", "runs", id, "events"], options);
  }

  /** Creates a run; with an agent, the server starts it. */
  create(run: NewRun = {}): Promise<Run> {
    return this.#http.post(["v1", "runs"], run);
  }

  /** Returns a run. */
  get(id: string): Promise<Run> {
    return this.#http.json({ path: ["v1", "runs", id] });
  }

  /** Returns a page of runs, newest first. */
  list(filter: RunFilter = {}, signal?: AbortSignal): Promise<RunList> {
    const { status, ...rest } = filter;
    const statuses = typeof status === "string" ? status : status?.join(",");
    return this.#http.json({ path: ["v1", "runs"], query: { status: statuses === "" ? undefined : statuses, ...rest }, signal });
  }

  /** Iterates over all runs, newest first, page by page. */
  async *all(filter: RunFilter = {}): AsyncGenerator<Run, void, undefined> {
    let before = filter.before;
    do {
      const page = await this.list({ ...filter, before });
      yield* page.runs;
      before = page.next ?? undefined;
    } while (before !== undefined);
  }

  /** Returns a run folded into one message. */
  message(id: string): Promise<MessageState> {
    return this.#http.json({ path: ["v1", "runs", id, "message"] });
  }

  /** Requests the cancellation of a run. */
  cancel(id: string, reason?: string): Promise<Run> {
    return this.#http.post(["v1", "runs", id, "cancel"], { reason });
  }

  /** Starts the same agent on the same input as a new run. */
  retry(id: string, options: { run_id?: string | undefined } = {}): Promise<Run> {
    return this.#http.post(["v1", "runs", id, "retry"], options);
  }

  /** Reports that the producer is alive; returns whether cancellation was requested. */
  heartbeat(id: string): Promise<Beat> {
    return this.#http.post(["v1", "runs", id, "heartbeat"]);
  }

  /** Writes frames, given as objects or as JSON strings. */
  write(id: string, frames: Iterable<unknown>, options: WriteOptions = {}): Promise<Written> {
    return write(this.#http, ["v1", "runs", id, "events"], frames, options);
  }

  /** Returns the position of a producer, to resume from. */
  producer(id: string, producer: string): Promise<Producer> {
    return this.#http.json({ path: ["v1", "runs", id, "producers", producer] });
  }

  /** Returns a page of a run's frames. */
  page<F = unknown>(id: string, options: PageOptions = {}): Promise<FramePage<F>> {
    const { signal, ...query } = options;
    return this.#http.json({ path: ["v1", "runs", id, "events"], query, signal });
  }

  /** Returns the raw response of a run's events: it is neither parsed nor resumed. */
  open(id: string, options: OpenOptions = {}): Promise<Response> {
    const { signal, framing = "sse", ...query } = options;
    const accept = framing === "ndjson" ? "application/x-ndjson" : "text/event-stream";
    return this.#http.send({ path: ["v1", "runs", id, "events"], query, headers: { accept }, signal });
  }
}
