import { NetworkError, ProtocolError } from "../errors.js";
import { type Http, type Query, messageOf } from "../http.js";
import { type SseEvent, SseParser } from "./sse-parser.js";

const EVENT_STREAM = "text/event-stream";

/** One SSE response, read event by event. */
export class SseConnection {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #abort: AbortController;
  readonly #idleTimeout: number;
  readonly #detach: () => void;
  readonly #decoder = new TextDecoder();
  readonly #parser = new SseParser();

  private constructor(body: ReadableStream<Uint8Array>, abort: AbortController, idleTimeout: number, detach: () => void) {
    this.#reader = body.getReader();
    this.#abort = abort;
    this.#idleTimeout = idleTimeout;
    this.#detach = detach;
  }

  /** Connects; returns undefined if there is nothing more to read. */
  static async open(http: Http, path: readonly string[], query: Query, signal: AbortSignal): Promise<SseConnection | undefined> {
    const abort = new AbortController();
    const onAbort = (): void => abort.abort();
    const detach = (): void => signal.removeEventListener("abort", onAbort);
    signal.addEventListener("abort", onAbort, { once: true });
    // The response headers have to arrive within the idle timeout too.
    const timer = setTimeout(onAbort, http.retry.idleTimeout);
    try {
      const response = await http.send({ path, query, headers: { accept: EVENT_STREAM }, signal: abort.signal });
      if (response.status === 204) {
        detach();
        return undefined;
      }
      const mediaType = response.headers.get("content-type") ?? "nothing";
      if (!mediaType.startsWith(EVENT_STREAM) || response.body === null) {
        await response.body?.cancel();
        throw new ProtocolError(`the server sent ${mediaType.slice(0, 80)}, not ${EVENT_STREAM}`);
      }
      return new SseConnection(response.body, abort, http.retry.idleTimeout, detach);
    } catch (error) {
      detach();
      throw abort.signal.aborted && !signal.aborted ? timeoutError(error) : error;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Waits for the next event; returns undefined at the end of the response. */
  async next(): Promise<SseEvent | undefined> {
    for (;;) {
      const event = this.#parser.next();
      if (event !== undefined) return event;
      const bytes = await this.#read();
      if (bytes === undefined) return undefined;
      this.#parser.push(this.#decoder.decode(bytes, { stream: true }));
    }
  }

  /** Closes the connection; the run continues. */
  close(): void {
    this.#detach();
    this.#abort.abort();
    // A failed cancel must not become an unhandled rejection.
    this.#reader.cancel().catch(() => undefined);
  }

  async #read(): Promise<Uint8Array | undefined> {
    // The timeout runs only while bytes are awaited, not while the caller handles an event.
    let hasTimedOut = false;
    const timer = setTimeout(() => {
      hasTimedOut = true;
      this.#abort.abort();
    }, this.#idleTimeout);
    try {
      const { done, value } = await this.#reader.read();
      return done ? undefined : value;
    } catch (error) {
      if (hasTimedOut) throw timeoutError(error);
      throw new NetworkError(`the connection broke: ${messageOf(error)}`, { cause: error });
    } finally {
      clearTimeout(timer);
    }
  }
}

function timeoutError(cause: unknown): NetworkError {
  return new NetworkError("the connection timed out: the server sent nothing", { cause });
}
