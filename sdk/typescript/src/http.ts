import { NetworkError, ProblemError, type Problem, ProtocolError } from "./errors.js";

/** A bearer token, or a function that returns one for each request. */
export type Token = string | (() => string | undefined | Promise<string | undefined>);

/** Options of a client. */
export interface ClientOptions {
  /** Base URL of the server; `""` is the page's own origin. */
  url: string;
  /** Sent as `Authorization: Bearer`, if the server requires a token. */
  token?: Token | undefined;
  /** Replaces the global `fetch`. */
  fetch?: typeof fetch | undefined;
  /** When streams reconnect, and when they give up. */
  retry?: Partial<RetryOptions> | undefined;
}

/** When a stream reconnects, and when it gives up. Times are in milliseconds. */
export interface RetryOptions {
  /** Attempts until the first connection succeeds. */
  connectAttempts: number;
  /** How long a stream that was connected tries to reconnect. */
  giveUpAfter: number;
  /** Delay after the first failure; each further failure doubles it. */
  initialDelay: number;
  /** Longest delay between two attempts. */
  maxDelay: number;
  /** A connection without bytes for this long counts as dead; the server sends a keep-alive every 15 s. */
  idleTimeout: number;
}

const DEFAULT_RETRY: RetryOptions = { connectAttempts: 3, giveUpAfter: Infinity, initialDelay: 100, maxDelay: 5000, idleTimeout: 45_000 };

/** Query parameters; undefined ones are omitted. */
export type Query = Record<string, string | number | boolean | undefined>;

/** An HTTP request. */
export interface HttpRequest {
  method?: string;
  /** Path segments; each is percent-encoded. */
  path: readonly string[];
  query?: Query | undefined;
  headers?: Record<string, string> | undefined;
  body?: string | undefined;
  signal?: AbortSignal | undefined;
}

/** Sends requests to one server. */
export class Http {
  readonly retry: RetryOptions;
  readonly #base: string;
  readonly #token: Token | undefined;
  readonly #fetch: typeof fetch;

  constructor(options: ClientOptions) {
    this.#base = options.url.replace(/\/+$/, "");
    this.#token = options.token;
    const custom = options.fetch;
    // A browser's fetch throws if it is called as a method of another object.
    this.#fetch = (input, init) => (custom ?? fetch)(input, init);
    this.retry = { ...DEFAULT_RETRY, ...options.retry };
  }

  /** Returns the URL of a request. */
  urlOf(path: readonly string[], query: Query = {}): string {
    const parameters = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined) parameters.set(name, String(value));
    }
    const text = parameters.toString();
    return `${this.#base}/${path.map(encodeURIComponent).join("/")}${text === "" ? "" : `?${text}`}`;
  }

  /** Sends a request; throws a `ProblemError` if the status is not 2xx. */
  async send(request: HttpRequest): Promise<Response> {
    const headers: Record<string, string> = { ...request.headers };
    const token = typeof this.#token === "function" ? await this.#token() : this.#token;
    if (token !== undefined) headers["authorization"] = `Bearer ${token}`;
    const init: RequestInit = { method: request.method ?? "GET", headers };
    if (request.body !== undefined) init.body = request.body;
    if (request.signal !== undefined) init.signal = request.signal;
    let response: Response;
    try {
      response = await this.#fetch(this.urlOf(request.path, request.query), init);
    } catch (cause) {
      if (request.signal?.aborted) throw cause;
      throw new NetworkError(`cannot reach ${this.#base || "the server"}: ${messageOf(cause)}`, { cause });
    }
    if (response.ok) return response;
    throw await problemOf(response);
  }

  /** Sends a request and parses the response as JSON. */
  async json<T>(request: HttpRequest): Promise<T> {
    const response = await this.send({ ...request, headers: { accept: "application/json", ...request.headers } });
    let text: string;
    try {
      text = await response.text();
    } catch (cause) {
      if (request.signal?.aborted) throw cause;
      throw new NetworkError(`the connection broke: ${messageOf(cause)}`, { cause });
    }
    try {
      return JSON.parse(text) as T;
    } catch (cause) {
      throw new ProtocolError("the server does not answer with JSON", { cause });
    }
  }

  /** Posts JSON and parses the response as JSON. */
  post<T>(path: readonly string[], body: unknown = {}, signal?: AbortSignal): Promise<T> {
    const headers = { "content-type": "application/json" };
    return this.json<T>({ method: "POST", path, headers, body: JSON.stringify(body), signal });
  }
}

/** Returns the message of an error, with that of its cause. */
export function messageOf(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause);
  // Node throws `fetch failed`; the cause has the details.
  return cause.cause instanceof Error ? `${cause.message}: ${cause.cause.message}` : cause.message;
}

async function problemOf(response: Response): Promise<ProblemError> {
  const problem: Problem = { status: response.status };
  try {
    const body: unknown = JSON.parse(await response.text());
    if (typeof body === "object" && body !== null && !Array.isArray(body)) Object.assign(problem, body, { status: response.status });
  } catch {
    // A proxy answered: only the status is known.
  }
  const seconds = Number(response.headers.get("retry-after") ?? NaN);
  return new ProblemError(problem, Number.isFinite(seconds) ? seconds * 1000 : undefined);
}
