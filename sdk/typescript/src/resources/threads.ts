import type { Dialect, EventOf } from "../events.js";
import type { MessageList, NewThread, Thread, ThreadList, Written } from "../generated.js";
import type { Http } from "../http.js";
import { RunStream, type StreamOptions } from "../stream/run-stream.js";
import type { FramePage, PageOptions, Paging, WriteOptions } from "./types.js";
import { write } from "./write.js";

/** API of threads. */
export class Threads {
  readonly #http: Http;

  constructor(http: Http) {
    this.#http = http;
  }

  /** Streams the events of a thread's runs, one run after the other, and continues with later runs. */
  stream<D extends Dialect = "runwire">(id: string, options?: StreamOptions<D>): RunStream<EventOf<D>> {
    return new RunStream(this.#http, ["v1", "threads", id, "events"], options);
  }

  /** Creates a thread. */
  create(thread: NewThread = {}): Promise<Thread> {
    return this.#http.post(["v1", "threads"], thread);
  }

  /** Returns a thread. */
  get(id: string): Promise<Thread> {
    return this.#http.json({ path: ["v1", "threads", id] });
  }

  /** Returns a page of threads, newest first. */
  list(paging: Paging = {}, signal?: AbortSignal): Promise<ThreadList> {
    return this.#http.json({ path: ["v1", "threads"], query: { ...paging }, signal });
  }

  /** Returns the user messages (`role` is `user`) and each run folded into one message (`assistant`); `limit` counts runs. */
  messages(id: string, paging: Paging = {}): Promise<MessageList> {
    return this.#http.json({ path: ["v1", "threads", id, "messages"], query: { ...paging } });
  }

  /** Deletes a thread with its runs; `force` cancels open runs first. */
  async delete(id: string, options: { force?: boolean } = {}): Promise<void> {
    await this.#http.send({ method: "DELETE", path: ["v1", "threads", id], query: { force: options.force } });
  }

  /** Writes frames of several runs; each frame names its run. */
  write(id: string, frames: Iterable<unknown>, options: Omit<WriteOptions, "thread"> = {}): Promise<Written> {
    return write(this.#http, ["v1", "threads", id, "events"], frames, options);
  }

  /** Returns a page of a thread's frames. */
  page<F = unknown>(id: string, options: PageOptions = {}): Promise<FramePage<F>> {
    const { signal, ...query } = options;
    return this.#http.json({ path: ["v1", "threads", id, "events"], query, signal });
  }
}
