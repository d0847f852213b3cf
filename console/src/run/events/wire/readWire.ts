import { isRetryable, NetworkError, ProblemError, type Problem } from "@runwire/client";
import { client } from "../../../client";
import { subscribeMessage, type Framing } from "../shellCommand";
import { ndjsonSplitter, parseSocketMessage, sseSplitter, type WireFrame } from "./splitFrames";

/** Options of a raw stream. */
export interface WireOptions {
  run: string;
  dialect: string;
  framing: Framing;
  signal: AbortSignal;
  /** Receives the frames in order. */
  onFrames(frames: readonly WireFrame[]): void;
  /** Returns true if the run has ended, so that the end of the response is the end of the stream. */
  isClosed(): boolean;
}

/** Shortest and longest delay between two attempts, in milliseconds. */
const initialDelay = 250;
const maxDelay = 5000;
/** A connection without bytes for this long counts as dead, in milliseconds; the server sends a keep-alive every 15 s. */
const idleTimeout = 45_000;
/** Interval of WebSocket pings in milliseconds. */
const pingInterval = 15_000;
/** Longest time in milliseconds that one task splits frames. */
const sliceMs = 8;

/** Reads a stream to its end and reconnects as needed. Throws errors that are not retryable. */
export async function readWire(options: WireOptions): Promise<void> {
  const { signal, framing, onFrames } = options;
  let cursor: string | undefined;
  let delay = initialDelay;
  const handleFrames = (frames: readonly WireFrame[]): boolean => {
    if (frames.length === 0) return false;
    cursor = frames.findLast((frame) => frame.cursor !== undefined)?.cursor ?? cursor;
    delay = initialDelay;
    onFrames(frames);
    return frames.some((frame) => frame.isEnd === true);
  };
  while (!signal.aborted) {
    const wasClosed = options.isClosed();
    try {
      const connect = framing === "websocket" ? readSocket : readBody;
      const isOver = await connect(options, cursor, handleFrames);
      if (isOver || wasClosed) return;
    } catch (error) {
      if (signal.aborted) return;
      const hasTimedOut = error instanceof DOMException && error.name === "AbortError";
      if (!hasTimedOut && !isRetryable(error)) throw error;
    }
    await sleep(delay, signal);
    delay = Math.min(delay * 2, maxDelay);
  }
}

type HandleFrames = (frames: readonly WireFrame[]) => boolean;

async function readBody(options: WireOptions, after: string | undefined, handleFrames: HandleFrames): Promise<boolean> {
  const idleTimer = new IdleTimer(idleTimeout);
  try {
    return await readWithTimeout(options, after, handleFrames, idleTimer);
  } finally {
    idleTimer.stop();
  }
}

async function readWithTimeout({ run, dialect, framing, signal }: WireOptions, after: string | undefined, handleFrames: HandleFrames, idleTimer: IdleTimer): Promise<boolean> {
  const isNdjson = framing === "ndjson";
  const anySignal = AbortSignal.any([signal, idleTimer.signal]);
  const response = await client.runs.open(run, { framing: isNdjson ? "ndjson" : "sse", dialect, after, signal: anySignal, ...(isNdjson && { cursors: true }) });
  if (response.status === 204 || response.body === null) return true;
  const split = isNdjson ? ndjsonSplitter() : sseSplitter();
  const decoder = new TextDecoder();
  const reader = response.body.getReader();
  let since = performance.now();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return false;
      idleTimer.reset();
      // Buffered chunks arrive without a pause, and would be one long task.
      if (performance.now() - since > sliceMs) {
        await new Promise((resolve) => setTimeout(resolve));
        since = performance.now();
      }
      if (handleFrames(split(decoder.decode(value, { stream: true })))) return true;
    }
  } catch (cause) {
    throw new NetworkError("the connection broke", { cause });
  } finally {
    // Closes the connection if reading stops early.
    reader.cancel().catch(() => undefined);
  }
}

/** Batch interval of socket messages in milliseconds: thousands may arrive at once. */
const batchInterval = 30;

function readSocket({ run, dialect, signal }: WireOptions, after: string | undefined, handleFrames: HandleFrames): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const url = new URL(client.urlOf(["v1", "ws"]), location.href);
    url.protocol = url.protocol.replace("http", "ws");
    const socket = new WebSocket(url);
    const idleTimer = new IdleTimer(idleTimeout);
    idleTimer.signal.addEventListener("abort", () => socket.close());
    const pingTimer = setInterval(() => socket.readyState === WebSocket.OPEN && socket.send('{"op":"ping"}'), pingInterval);
    let batch: WireFrame[] = [];
    let timer: ReturnType<typeof setTimeout> | undefined;
    const flush = (): boolean => {
      clearTimeout(timer);
      timer = undefined;
      const frames = batch;
      batch = [];
      return handleFrames(frames);
    };
    const close = (): void => {
      signal.removeEventListener("abort", close);
      clearTimeout(timer);
      clearInterval(pingTimer);
      idleTimer.stop();
      socket.close();
      resolve(false);
    };
    signal.addEventListener("abort", close, { once: true });
    socket.onopen = () => socket.send(JSON.stringify(subscribeMessage({ run, dialect, after })));
    socket.onmessage = ({ data }) => {
      idleTimer.reset();
      const frame = parseSocketMessage(String(data));
      // The response to a ping is not part of the stream.
      if (frame.text === '{"op":"pong"}') return;
      if (frame.text.startsWith('{"op":"error"')) {
        const { op: _, id: __, ...problem } = JSON.parse(frame.text) as Problem & { op: string; id: string };
        reject(new ProblemError(problem as Problem));
        return close();
      }
      batch.push(frame);
      if (frame.isEnd === true) {
        flush();
        resolve(true);
        close();
      } else timer ??= setTimeout(flush, batchInterval);
    };
    socket.onclose = () => {
      if (!signal.aborted) flush();
      reject(new NetworkError("the connection broke"));
      close();
    };
  });
}

/** Aborts when no bytes arrive for too long: a machine that slept is not notified of a dead connection. */
class IdleTimer {
  readonly #abort = new AbortController();
  readonly #timeout: number;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(timeout: number) {
    this.#timeout = timeout;
    this.reset();
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  reset(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#abort.abort(), this.#timeout);
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}

function sleep(millis: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, millis);
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });
}
