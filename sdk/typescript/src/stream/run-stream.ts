import { ProtocolError, RunwireError, isRetryable, NetworkError, ProblemError } from "../errors.js";
import { type CaughtUp, caughtUpMarker, type Dialect, type EventOf, isTerminal, setOrigin } from "../events.js";
import type { Http, Query } from "../http.js";
import { Backoff, pause } from "./backoff.js";
import { SseConnection } from "./sse-connection.js";
import { type SseEvent, MAX_EVENT_LENGTH } from "./sse-parser.js";

/** The state of a stream's connection. */
export type StreamStatus = "connecting" | "catching-up" | "live" | "waiting" | "ended";

/** Which extension frames are sent: all; only those of interactions, suspension and user messages; none. */
export type Slots = "all" | "asks" | "none";

/** Options of a stream. */
export interface StreamOptions<D extends Dialect = "runwire"> {
  /** Cursor to start after; `end` starts with the next event. Default: the beginning. */
  after?: string | undefined;
  /** Dialect of the events. Default: `runwire`. */
  dialect?: D | undefined;
  /** Closes the stream when aborted: the loop ends without an error, and the run continues. */
  signal?: AbortSignal | undefined;
  /** Start with a snapshot instead of the history, if the dialect has one. */
  attach?: boolean | undefined;
  /** Merge adjacent text deltas of the history into fewer events. */
  compact?: boolean | undefined;
  /** Which extension frames are sent. Default: all. */
  slots?: Slots | undefined;
  /** Wait for further events after the stored ones. Default: true. */
  follow?: boolean | undefined;
  /** Called when the status changes; with `waiting`, `detail` is the error that interrupted the stream. */
  onStatus?: ((status: StreamStatus, detail?: RunwireError) => void) | undefined;
}

/** How a connection ended. */
type Outcome = "ended" | "reconnect" | NetworkError | ProblemError;

/**
 * The events of a run or a thread, read over as many connections as needed.
 *
 * After a broken or idle connection or a server restart, the stream resumes after the last event that was yielded: each
 * event is yielded exactly once. A second loop after `break` continues where the first one stopped.
 */
export class RunStream<E extends object> implements AsyncIterable<E | CaughtUp> {
  readonly #http: Http;
  readonly #path: readonly string[];
  readonly #options: StreamOptions<Dialect>;
  readonly #backoff: Backoff;
  #cursor: string | undefined;
  #status: StreamStatus = "connecting";
  #isIterating = false;
  #wasConnected = false;
  #failures = 0;
  /** When the connection was lost; undefined after the next event. */
  #disconnectedAt: number | undefined;
  /** Delay before the next connection that the server asked for, in milliseconds. */
  #retryAfter: number | undefined;
  /** Whether this connection has advanced the cursor. */
  #hasAdvanced = false;

  /** Creates a stream; it connects when it is iterated. */
  constructor(http: Http, path: readonly string[], options: StreamOptions<Dialect> = {}) {
    this.#http = http;
    this.#path = path;
    this.#options = options;
    this.#cursor = options.after;
    this.#backoff = new Backoff(http.retry);
  }

  /** The cursor after the last event that was yielded; a new stream can resume from it. */
  get cursor(): string | undefined {
    return this.#cursor;
  }

  /** The state of the connection. */
  get status(): StreamStatus {
    return this.#status;
  }

  /** Yields each event once, and a marker whenever a connection has caught up. */
  async *[Symbol.asyncIterator](): AsyncGenerator<E | CaughtUp, void, undefined> {
    if (this.#isIterating) throw new RunwireError("the stream is being read already");
    this.#isIterating = true;
    const { signal = new AbortController().signal } = this.#options;
    try {
      while (!signal.aborted) {
        const outcome = yield* this.#connect(signal);
        if (outcome === "ended") break;
        if (outcome === "reconnect") continue;
        if (!signal.aborted) await this.#backOff(outcome, signal);
      }
    } finally {
      this.#isIterating = false;
      this.#setStatus("ended");
    }
  }

  async *#connect(signal: AbortSignal): AsyncGenerator<E | CaughtUp, Outcome, undefined> {
    this.#setStatus("connecting");
    this.#retryAfter = undefined;
    this.#hasAdvanced = false;
    let connection: SseConnection | undefined;
    try {
      connection = await SseConnection.open(this.#http, this.#path, this.#query(), signal);
      if (connection === undefined) return "ended";
      this.#wasConnected = true;
      this.#setStatus("catching-up");
      return yield* this.#read(connection, signal);
    } catch (error) {
      if (signal.aborted) return "ended";
      if (isRetryable(error)) return error as NetworkError | ProblemError;
      throw error;
    } finally {
      connection?.close();
    }
  }

  async *#read(connection: SseConnection, signal: AbortSignal): AsyncGenerator<E | CaughtUp, Outcome, undefined> {
    // Frames without a cursor wait for one: yielded earlier, they would come twice after a reconnect.
    let pending: SseEvent[] = [];
    let pendingLength = 0;
    for (;;) {
      const received = await connection.next();
      if (signal.aborted) return "ended";
      if (received === undefined || received.isEnd) {
        if (received === undefined) {
          if (this.#retryAfter !== undefined) return new NetworkError("the server is stopping");
          // Either the run has ended, which the next response confirms, or the server has stopped.
          if (this.#options.follow !== false) return this.#hasAdvanced ? "reconnect" : new NetworkError("the server ended the stream");
        }
        for (const each of pending) yield this.#parse(each);
        return "ended";
      }
      if (received.data !== undefined) {
        pendingLength += received.data.length;
        if (pendingLength > MAX_EVENT_LENGTH) throw new ProtocolError(`a snapshot has more than ${MAX_EVENT_LENGTH} characters`);
        pending.push(received);
        if (received.id === undefined) continue;
        for (const each of pending) {
          const event = this.#parse(each);
          if (each.id !== undefined) this.#advance(each.id);
          yield event;
          if (this.#endsRun(event)) return "ended";
        }
        pending = [];
        pendingLength = 0;
      } else if (received.id !== undefined) this.#advance(received.id);
      if (received.retry !== undefined) this.#retryAfter = received.retry;
      if (received.isCaughtUp) {
        this.#setStatus("live");
        yield caughtUpMarker(this.#cursor);
      }
    }
  }

  #query(): Query {
    const { dialect = "runwire", attach, compact, slots, follow } = this.#options;
    return {
      dialect,
      after: this.#cursor,
      follow: follow === false ? false : undefined,
      compact: compact === true ? true : undefined,
      slots,
      // A snapshot would repeat the events before the cursor.
      attach: attach === true && this.#cursor === undefined ? "snapshot" : undefined,
    };
  }

  #parse(received: SseEvent): E {
    const data = received.data ?? "";
    const parsed: unknown = this.#options.dialect === "text" ? { type: "text", content: data } : parseJson(data);
    if (typeof parsed !== "object" || parsed === null) throw new ProtocolError("a frame is no JSON object");
    return setOrigin(parsed as E, received.id, received.name);
  }

  /** Returns true if an event is the last one of a run's stream. */
  #endsRun(event: E): boolean {
    const { dialect = "runwire" } = this.#options;
    return dialect === "runwire" && this.#path[1] === "runs" && isTerminal(event as unknown as EventOf<"runwire">);
  }

  #advance(cursor: string): void {
    if (this.#cursor !== cursor) this.#hasAdvanced = true;
    this.#cursor = cursor;
    // Progress resets the backoff.
    this.#backoff.reset();
    this.#disconnectedAt = undefined;
  }

  /** Waits before the next attempt, or throws if the limit is reached. */
  async #backOff(error: NetworkError | ProblemError, signal: AbortSignal): Promise<void> {
    const { connectAttempts, giveUpAfter } = this.#http.retry;
    this.#failures++;
    this.#disconnectedAt ??= Date.now();
    const hasGivenUp = this.#wasConnected ? Date.now() - this.#disconnectedAt >= giveUpAfter : this.#failures >= connectAttempts;
    if (hasGivenUp) throw error;
    this.#setStatus("waiting", error);
    const requested = this.#retryAfter ?? (error instanceof ProblemError ? error.retryAfter : undefined);
    await pause(this.#backoff.next(requested), signal);
  }

  #setStatus(status: StreamStatus, detail?: RunwireError): void {
    if (this.#status === status && status !== "connecting") return;
    this.#status = status;
    this.#options.onStatus?.(status, detail);
  }
}

function parseJson(data: string): unknown {
  try {
    return JSON.parse(data);
  } catch (cause) {
    throw new ProtocolError("a frame is no JSON", { cause });
  }
}
