import { isRetryable, NetworkError, ProblemError, type Problem } from "@runwire/client";
import { client } from "../../../client";
import { subscription, type Framing } from "../command";
import { ndjsonCutter, socketPiece, sseCutter, type Piece } from "./cut";

/** A stream to read as it is on the wire. */
export interface WireOptions {
  run: string;
  dialect: string;
  framing: Framing;
  signal: AbortSignal;
  /** Is given what has come, in order. */
  take(pieces: readonly Piece[]): void;
  /** Tells whether the run is over, so that nothing comes after the end of an answer. */
  isClosed(): boolean;
}

/** Waits between two attempts, in milliseconds. */
const shortest = 250;
const longest = 5000;
/** The silence after which a connection counts as dead, in milliseconds; a server shows every 15 s that it lives. */
const silence = 45_000;
/** How often a WebSocket is asked whether it lives, in milliseconds. */
const asking = 15_000;
/** How long one task cuts frames, in milliseconds; the page stays smooth meanwhile. */
const slice = 8;

/** Reads a stream to its end, over as many connections as it takes. What cannot get better by waiting is thrown. */
export async function readWire(options: WireOptions): Promise<void> {
  const { signal, framing, take } = options;
  let cursor: string | undefined;
  let wait = shortest;
  const taken = (pieces: readonly Piece[]): boolean => {
    if (pieces.length === 0) return false;
    cursor = pieces.findLast((piece) => piece.cursor !== undefined)?.cursor ?? cursor;
    wait = shortest;
    take(pieces);
    return pieces.some((piece) => piece.isEnd === true);
  };
  while (!signal.aborted) {
    const wasClosed = options.isClosed();
    try {
      const connect = framing === "websocket" ? readSocket : readBody;
      const isOver = await connect(options, cursor, taken);
      if (isOver || wasClosed) return;
    } catch (error) {
      if (signal.aborted) return;
      const isSilent = error instanceof DOMException && error.name === "AbortError";
      if (!isSilent && !isRetryable(error)) throw error;
    }
    await pause(wait, signal);
    wait = Math.min(wait * 2, longest);
  }
}

type Taken = (pieces: readonly Piece[]) => boolean;

async function readBody(options: WireOptions, after: string | undefined, taken: Taken): Promise<boolean> {
  const watch = new Watch(silence);
  try {
    return await readWatched(options, after, taken, watch);
  } finally {
    watch.stop();
  }
}

async function readWatched({ run, dialect, framing, signal }: WireOptions, after: string | undefined, taken: Taken, watch: Watch): Promise<boolean> {
  const isLines = framing === "ndjson";
  const either = AbortSignal.any([signal, watch.signal]);
  const response = await client.runs.open(run, { framing: isLines ? "ndjson" : "sse", dialect, after, signal: either, ...(isLines && { cursors: true }) });
  if (response.status === 204 || response.body === null) return true;
  const cut = isLines ? ndjsonCutter() : sseCutter();
  const decoder = new TextDecoder();
  const reader = response.body.getReader();
  let since = performance.now();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return false;
      watch.heard();
      // What the browser holds already comes without a pause, and would be one long task.
      if (performance.now() - since > slice) {
        await new Promise((resolve) => setTimeout(resolve));
        since = performance.now();
      }
      if (taken(cut(decoder.decode(value, { stream: true })))) return true;
    }
  } catch (cause) {
    throw new NetworkError("the connection broke", { cause });
  } finally {
    // Whoever leaves early must not keep the connection open.
    reader.cancel().catch(() => undefined);
  }
}

/** Takes what has come to the socket at most this often, in milliseconds: thousands of messages come at once. */
const gathering = 30;

function readSocket({ run, dialect, signal }: WireOptions, after: string | undefined, taken: Taken): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const address = new URL(client.urlOf(["v1", "ws"]), location.href);
    address.protocol = address.protocol.replace("http", "ws");
    const socket = new WebSocket(address);
    const watch = new Watch(silence);
    watch.signal.addEventListener("abort", () => socket.close());
    const asker = setInterval(() => socket.readyState === WebSocket.OPEN && socket.send('{"op":"ping"}'), asking);
    let held: Piece[] = [];
    let timer: ReturnType<typeof setTimeout> | undefined;
    const flush = (): boolean => {
      clearTimeout(timer);
      timer = undefined;
      const pieces = held;
      held = [];
      return taken(pieces);
    };
    const leave = (): void => {
      signal.removeEventListener("abort", leave);
      clearTimeout(timer);
      clearInterval(asker);
      watch.stop();
      socket.close();
      resolve(false);
    };
    signal.addEventListener("abort", leave, { once: true });
    socket.onopen = () => socket.send(JSON.stringify(subscription({ run, dialect, after })));
    socket.onmessage = ({ data }) => {
      watch.heard();
      const piece = socketPiece(String(data));
      // The answer to a ping of our own is no part of the stream.
      if (piece.text === '{"op":"pong"}') return;
      if (piece.text.startsWith('{"op":"error"')) {
        const { op: _, id: __, ...problem } = JSON.parse(piece.text) as Problem & { op: string; id: string };
        reject(new ProblemError(problem as Problem));
        return leave();
      }
      held.push(piece);
      if (piece.isEnd === true) {
        flush();
        resolve(true);
        leave();
      } else timer ??= setTimeout(flush, gathering);
    };
    socket.onclose = () => {
      if (!signal.aborted) flush();
      reject(new NetworkError("the connection broke"));
      leave();
    };
  });
}

/** Says stop when nothing was heard for too long: a machine that slept does not learn that its connection is gone. */
class Watch {
  readonly #abort = new AbortController();
  readonly #longest: number;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(longest: number) {
    this.#longest = longest;
    this.heard();
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  heard(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#abort.abort(), this.#longest);
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}

function pause(millis: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, millis);
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });
}
