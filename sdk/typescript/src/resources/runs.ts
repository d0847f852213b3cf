import type { Dialect, EventOf } from "../events.js";
import type { Beat, MessageState, NewRun, Producer, Run, RunList, Written } from "../generated.js";
import type { Http } from "../http.js";
import { RunStream, type StreamOptions } from "../stream/stream.js";
import type { FramePage, OpenOptions, PageOptions, RunFilter, WriteOptions } from "./types.js";
import { write } from "./write.js";

/** The runs of a server. */
export class Runs {
  readonly #http: Http;

  constructor(http: Http) {
    this.#http = http;
  }

  /** Reads a run as it happens, from any place, over as many connections as it takes. */
  stream<D extends Dialect = "runwire">(id: string, options?: StreamOptions<D>): RunStream<EventOf<D>> {
    return new RunStream(this.#http, ["v1", "runs", id, "events"], options);
  }

  /** Creates a run; with an agent, the server starts it. */
  create(run: NewRun = {}): Promise<Run> {
    return this.#http.post(["v1", "runs"], run);
  }

  /** Shows a run. */
  get(id: string): Promise<Run> {
    return this.#http.json({ path: ["v1", "runs", id] });
  }

  /** Lists a page of runs, newest first. */
  list(filter: RunFilter = {}, signal?: AbortSignal): Promise<RunList> {
    const { status, ...rest } = filter;
    const words = typeof status === "string" ? status : status?.join(",");
    return this.#http.json({ path: ["v1", "runs"], query: { status: words === "" ? undefined : words, ...rest }, signal });
  }

  /** Walks over all runs, newest first, page by page. */
  async *all(filter: RunFilter = {}): AsyncGenerator<Run, void, undefined> {
    let before = filter.before;
    do {
      const page = await this.list({ ...filter, before });
      yield* page.runs;
      before = page.next ?? undefined;
    } while (before !== undefined);
  }

  /** Gives a run folded into one message. */
  message(id: string): Promise<MessageState> {
    return this.#http.json({ path: ["v1", "runs", id, "message"] });
  }

  /** Asks a run to stop. */
  cancel(id: string, reason?: string): Promise<Run> {
    return this.#http.post(["v1", "runs", id, "cancel"], { reason });
  }

  /** Starts the same agent on the same input as a new run. */
  retry(id: string, options: { run_id?: string | undefined } = {}): Promise<Run> {
    return this.#http.post(["v1", "runs", id, "retry"], options);
  }

  /** Says that the producer lives, and hears whether somebody asked it to stop. */
  heartbeat(id: string): Promise<Beat> {
    return this.#http.post(["v1", "runs", id, "heartbeat"]);
  }

  /** Writes frames; objects, or texts that are JSON. */
  write(id: string, frames: Iterable<unknown>, options: WriteOptions = {}): Promise<Written> {
    return write(this.#http, ["v1", "runs", id, "events"], frames, options);
  }

  /** Tells where a producer stands, so that it can go on. */
  producer(id: string, producer: string): Promise<Producer> {
    return this.#http.json({ path: ["v1", "runs", id, "producers", producer] });
  }

  /** Reads a part of a run. */
  page<F = unknown>(id: string, options: PageOptions = {}): Promise<FramePage<F>> {
    const { signal, ...query } = options;
    return this.#http.json({ path: ["v1", "runs", id, "events"], query, signal });
  }

  /** Opens a run as the server sends it, byte for byte: nothing is parsed, and a connection that breaks stays broken. */
  open(id: string, options: OpenOptions = {}): Promise<Response> {
    const { signal, framing = "sse", ...query } = options;
    const accept = framing === "ndjson" ? "application/x-ndjson" : "text/event-stream";
    return this.#http.send({ path: ["v1", "runs", id, "events"], query, headers: { accept }, signal });
  }
}
