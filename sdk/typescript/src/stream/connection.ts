import { NetworkError, ProtocolError } from "../errors.js";
import { type Http, type Query, reason } from "../http.js";
import { type Block, Cutter } from "./cutter.js";

const EVENT_STREAM = "text/event-stream";

/** One answer that is read event by event. */
export class Connection {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #abort: AbortController;
  readonly #silence: number;
  readonly #detach: () => void;
  readonly #decoder = new TextDecoder();
  readonly #cutter = new Cutter();

  private constructor(body: ReadableStream<Uint8Array>, abort: AbortController, silence: number, detach: () => void) {
    this.#reader = body.getReader();
    this.#abort = abort;
    this.#silence = silence;
    this.#detach = detach;
  }

  /** Connects; nothing if there is nothing more to read. */
  static async open(http: Http, path: readonly string[], query: Query, signal: AbortSignal): Promise<Connection | undefined> {
    const abort = new AbortController();
    const leave = (): void => abort.abort();
    const detach = (): void => signal.removeEventListener("abort", leave);
    signal.addEventListener("abort", leave, { once: true });
    // A server that takes a connection and says nothing is no server.
    const timer = setTimeout(leave, http.patience.silence);
    try {
      const response = await http.send({ path, query, headers: { accept: EVENT_STREAM }, signal: abort.signal });
      if (response.status === 204) {
        detach();
        return undefined;
      }
      const media = response.headers.get("content-type") ?? "nothing";
      if (!media.startsWith(EVENT_STREAM) || response.body === null) {
        await response.body?.cancel();
        throw new ProtocolError(`the server answers with ${media.slice(0, 80)} where ${EVENT_STREAM} was asked for`);
      }
      return new Connection(response.body, abort, http.patience.silence, detach);
    } catch (error) {
      detach();
      throw abort.signal.aborted && !signal.aborted ? silent(error) : error;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Waits for the next event; nothing at the end of the answer. */
  async next(): Promise<Block | undefined> {
    for (;;) {
      const block = this.#cutter.next();
      if (block !== undefined) return block;
      const bytes = await this.#read();
      if (bytes === undefined) return undefined;
      this.#cutter.push(this.#decoder.decode(bytes, { stream: true }));
    }
  }

  /** Leaves; the run goes on. */
  close(): void {
    this.#detach();
    this.#abort.abort();
    // What was cut off may not be of interest, but must not be an unhandled rejection.
    this.#reader.cancel().catch(() => undefined);
  }

  async #read(): Promise<Uint8Array | undefined> {
    // Only while the server is waited for does silence count.
    let isSilent = false;
    const timer = setTimeout(() => {
      isSilent = true;
      this.#abort.abort();
    }, this.#silence);
    try {
      const { done, value } = await this.#reader.read();
      return done ? undefined : value;
    } catch (error) {
      if (isSilent) throw silent(error);
      throw new NetworkError(`the connection broke: ${reason(error)}`, { cause: error });
    } finally {
      clearTimeout(timer);
    }
  }
}

function silent(cause: unknown): NetworkError {
  return new NetworkError("the server was silent for too long", { cause });
}
