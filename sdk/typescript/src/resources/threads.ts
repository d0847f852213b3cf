import type { Dialect, EventOf } from "../events.js";
import type { MessageList, NewThread, Thread, ThreadList, Written } from "../generated.js";
import type { Http } from "../http.js";
import { RunStream, type StreamOptions } from "../stream/stream.js";
import type { FramePage, PageOptions, Paging, WriteOptions } from "./types.js";
import { write } from "./write.js";

/** The threads of a server. */
export class Threads {
  readonly #http: Http;

  constructor(http: Http) {
    this.#http = http;
  }

  /** Reads all runs of a thread, one after the other, and goes on with the next. */
  stream<D extends Dialect = "runwire">(id: string, options?: StreamOptions<D>): RunStream<EventOf<D>> {
    return new RunStream(this.#http, ["v1", "threads", id, "events"], options);
  }

  /** Creates a thread. */
  create(thread: NewThread = {}): Promise<Thread> {
    return this.#http.post(["v1", "threads"], thread);
  }

  /** Shows a thread. */
  get(id: string): Promise<Thread> {
    return this.#http.json({ path: ["v1", "threads", id] });
  }

  /** Lists a page of threads, newest first. */
  list(paging: Paging = {}, signal?: AbortSignal): Promise<ThreadList> {
    return this.#http.json({ path: ["v1", "threads"], query: { ...paging }, signal });
  }

  /** Gives what people said (`role` is `user`), and each run folded into one message (`assistant`); `limit` counts runs. */
  messages(id: string, paging: Paging = {}): Promise<MessageList> {
    return this.#http.json({ path: ["v1", "threads", id, "messages"], query: { ...paging } });
  }

  /** Deletes a thread and everything of it; with `force`, its open runs are cancelled first. */
  async delete(id: string, options: { force?: boolean } = {}): Promise<void> {
    await this.#http.send({ method: "DELETE", path: ["v1", "threads", id], query: { force: options.force } });
  }

  /** Writes frames of several runs; each goes to the run that it names. */
  write(id: string, frames: Iterable<unknown>, options: Omit<WriteOptions, "thread"> = {}): Promise<Written> {
    return write(this.#http, ["v1", "threads", id, "events"], frames, options);
  }

  /** Reads a part of a thread. */
  page<F = unknown>(id: string, options: PageOptions = {}): Promise<FramePage<F>> {
    const { signal, ...query } = options;
    return this.#http.json({ path: ["v1", "threads", id, "events"], query, signal });
  }
}
