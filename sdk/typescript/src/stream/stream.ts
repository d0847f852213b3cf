import { ProtocolError, RunwireError, isTemporary, NetworkError, ProblemError } from "../errors.js";
import { type CaughtUp, caughtUpAt, type Dialect, type EventOf, isTerminal, remember } from "../events.js";
import type { Http, Query } from "../http.js";
import { Backoff, pause } from "./backoff.js";
import { Connection } from "./connection.js";
import { type Block, EVENT_CHARACTERS } from "./cutter.js";

/** How a stream stands. */
export type StreamStatus = "connecting" | "catching-up" | "live" | "waiting" | "ended";

/** Which extension frames are shown: all; only questions, answers, suspension and a person's words; none. */
export type Slots = "all" | "asks" | "none";

/** What a reader asks for. */
export interface StreamOptions<D extends Dialect = "runwire"> {
  /** Begin after this cursor, or with what happens from now on: `end`; without it, at the start. */
  after?: string | undefined;
  /** The dialect of what is handed out; `runwire` without it. */
  dialect?: D | undefined;
  /** Leaves the stream when it is aborted; the loop then ends without an error, and the run goes on. */
  signal?: AbortSignal | undefined;
  /** Begin with the present in one go instead of all that led to it, where the dialect offers that. */
  attach?: boolean | undefined;
  /** Merge neighbouring pieces of text that lie behind into fewer events. */
  compact?: boolean | undefined;
  /** Which extension frames are shown: everything that the dialect cannot say natively, without it. */
  slots?: Slots | undefined;
  /** Whether to wait for more than is there now; true without it. */
  follow?: boolean | undefined;
  /** Is told when the stream's status changes; with `waiting` comes the error that interrupted it. */
  onStatus?: ((status: StreamStatus, detail?: RunwireError) => void) | undefined;
}

/** What a connection came to. */
type Outcome = "ended" | "again" | NetworkError | ProblemError;

/**
 * A run or a thread as a stream: from any place, over as many connections as it takes.
 *
 * Where a connection breaks, falls silent, or the server restarts, reading goes on after the last event that was
 * handed out: none is missing and none comes twice. After `break`, reading it again goes on where it was left.
 */
export class RunStream<E extends object> implements AsyncIterable<E | CaughtUp> {
  readonly #http: Http;
  readonly #path: readonly string[];
  readonly #options: StreamOptions<Dialect>;
  readonly #backoff: Backoff;
  #cursor: string | undefined;
  #status: StreamStatus = "connecting";
  #isRead = false;
  #wasConnected = false;
  #tries = 0;
  /** When the connection was lost, if nothing has been heard since. */
  #lost: number | undefined;
  /** What the server asks to wait before the next connection. */
  #leaving: number | undefined;
  /** Whether this connection has moved the cursor. */
  #hasAdvanced = false;

  /** Makes a stream that connects when it is read. */
  constructor(http: Http, path: readonly string[], options: StreamOptions<Dialect> = {}) {
    this.#http = http;
    this.#path = path;
    this.#options = options;
    this.#cursor = options.after;
    this.#backoff = new Backoff(http.patience);
  }

  /** The place after everything that was handed out; a new stream can go on from there. */
  get cursor(): string | undefined {
    return this.#cursor;
  }

  /** How the stream stands. */
  get status(): StreamStatus {
    return this.#status;
  }

  /** Hands out the events, each once, and after each catching up a marker. */
  async *[Symbol.asyncIterator](): AsyncGenerator<E | CaughtUp, void, undefined> {
    if (this.#isRead) throw new RunwireError("the stream is being read already");
    this.#isRead = true;
    const { signal = new AbortController().signal } = this.#options;
    try {
      while (!signal.aborted) {
        const outcome = yield* this.#connect(signal);
        if (outcome === "ended") break;
        if (outcome === "again") continue;
        if (!signal.aborted) await this.#wait(outcome, signal);
      }
    } finally {
      this.#isRead = false;
      this.#become("ended");
    }
  }

  async *#connect(signal: AbortSignal): AsyncGenerator<E | CaughtUp, Outcome, undefined> {
    this.#become("connecting");
    this.#leaving = undefined;
    this.#hasAdvanced = false;
    let connection: Connection | undefined;
    try {
      connection = await Connection.open(this.#http, this.#path, this.#query(), signal);
      if (connection === undefined) return "ended";
      this.#wasConnected = true;
      this.#become("catching-up");
      return yield* this.#read(connection, signal);
    } catch (error) {
      if (signal.aborted) return "ended";
      if (isTemporary(error)) return error as NetworkError | ProblemError;
      throw error;
    } finally {
      connection?.close();
    }
  }

  async *#read(connection: Connection, signal: AbortSignal): AsyncGenerator<E | CaughtUp, Outcome, undefined> {
    // Frames without a cursor: handed out earlier, they would come twice if the connection broke.
    let held: Block[] = [];
    let heldSize = 0;
    for (;;) {
      const block = await connection.next();
      if (signal.aborted) return "ended";
      if (block === undefined || block.isEnd) {
        if (block === undefined) {
          if (this.#leaving !== undefined) return new NetworkError("the server is stopping");
          // The end of the run, which the next answer confirms, or of the server.
          if (this.#options.follow !== false) return this.#hasAdvanced ? "again" : new NetworkError("the server ended the stream");
        }
        for (const each of held) yield this.#event(each);
        return "ended";
      }
      if (block.data !== undefined) {
        heldSize += block.data.length;
        if (heldSize > EVENT_CHARACTERS) throw new ProtocolError(`a snapshot has more than ${EVENT_CHARACTERS} characters`);
        held.push(block);
        if (block.id === undefined) continue;
        for (const each of held) {
          const event = this.#event(each);
          if (each.id !== undefined) this.#progress(each.id);
          yield event;
          if (this.#ends(event)) return "ended";
        }
        held = [];
        heldSize = 0;
      } else if (block.id !== undefined) this.#progress(block.id);
      if (block.retry !== undefined) this.#leaving = block.retry;
      if (block.isCaughtUp) {
        this.#become("live");
        yield caughtUpAt(this.#cursor);
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
      // Whoever has a cursor has the past: a snapshot would tell it again.
      attach: attach === true && this.#cursor === undefined ? "snapshot" : undefined,
    };
  }

  #event(block: Block): E {
    const data = block.data ?? "";
    const parsed: unknown = this.#options.dialect === "text" ? { type: "text", content: data } : parse(data);
    if (typeof parsed !== "object" || parsed === null) throw new ProtocolError("a frame is no JSON object");
    return remember(parsed as E, block.id, block.name);
  }

  /** Tells whether a run has nothing to say after an event. */
  #ends(event: E): boolean {
    const { dialect = "runwire" } = this.#options;
    return dialect === "runwire" && this.#path[1] === "runs" && isTerminal(event as unknown as EventOf<"runwire">);
  }

  #progress(cursor: string): void {
    if (this.#cursor !== cursor) this.#hasAdvanced = true;
    this.#cursor = cursor;
    // What went wrong before is over.
    this.#backoff.reset();
    this.#lost = undefined;
  }

  /** Gives up, or waits for another attempt. */
  async #wait(error: NetworkError | ProblemError, signal: AbortSignal): Promise<void> {
    const { firstTries, giveUpAfter } = this.#http.patience;
    this.#tries++;
    this.#lost ??= Date.now();
    const isOver = this.#wasConnected ? Date.now() - this.#lost >= giveUpAfter : this.#tries >= firstTries;
    if (isOver) throw error;
    this.#become("waiting", error);
    const asked = this.#leaving ?? (error instanceof ProblemError ? error.retryAfter : undefined);
    await pause(this.#backoff.next(asked), signal);
  }

  #become(status: StreamStatus, detail?: RunwireError): void {
    if (this.#status === status && status !== "connecting") return;
    this.#status = status;
    this.#options.onStatus?.(status, detail);
  }
}

function parse(data: string): unknown {
  try {
    return JSON.parse(data);
  } catch (cause) {
    throw new ProtocolError("a frame is no JSON", { cause });
  }
}
