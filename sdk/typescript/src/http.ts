import { NetworkError, ProblemError, type Problem, ProtocolError } from "./errors.js";

/** A token, or how to get one for each request. */
export type Token = string | (() => string | undefined | Promise<string | undefined>);

/** How a client reaches its server. */
export interface ClientOptions {
  /** The server's address; `""` is the page's own origin. */
  url: string;
  /** What the server asks for, where it asks for a token. */
  token?: Token | undefined;
  /** What carries requests, in place of the global `fetch`. */
  fetch?: typeof fetch | undefined;
  /** When streams try again, and when they give up. */
  patience?: Partial<Patience> | undefined;
}

/** When a stream tries again, and when it gives up. Times are in milliseconds. */
export interface Patience {
  /** Attempts before the first connection. */
  firstTries: number;
  /** How long a stream that was connected tries to come back. */
  giveUpAfter: number;
  /** The wait after the first failure; each further one doubles it. */
  shortestWait: number;
  /** The longest wait. */
  longestWait: number;
  /** The silence after which a connection counts as dead; a server shows every 15 s that it lives. */
  silence: number;
}

const PATIENCE: Patience = { firstTries: 3, giveUpAfter: Infinity, shortestWait: 100, longestWait: 5000, silence: 45_000 };

/** Values of a query; what is undefined is left out. */
export type Query = Record<string, string | number | boolean | undefined>;

/** One request. */
export interface Ask {
  method?: string;
  /** Segments of the path, each one escaped. */
  path: readonly string[];
  query?: Query | undefined;
  headers?: Record<string, string> | undefined;
  body?: string | undefined;
  signal?: AbortSignal | undefined;
}

/** Sends requests to one server. */
export class Http {
  readonly patience: Patience;
  readonly #base: string;
  readonly #token: Token | undefined;
  readonly #fetch: typeof fetch;

  constructor(options: ClientOptions) {
    this.#base = options.url.replace(/\/+$/, "");
    this.#token = options.token;
    const carry = options.fetch;
    // Called as a method of something else, a browser's fetch refuses to work.
    this.#fetch = (input, init) => (carry ?? fetch)(input, init);
    this.patience = { ...PATIENCE, ...options.patience };
  }

  /** Tells the address of a request. */
  address(path: readonly string[], query: Query = {}): string {
    const parameters = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined) parameters.set(name, String(value));
    }
    const text = parameters.toString();
    return `${this.#base}/${path.map(encodeURIComponent).join("/")}${text === "" ? "" : `?${text}`}`;
  }

  /** Sends a request; an answer that refuses is thrown. */
  async send(ask: Ask): Promise<Response> {
    const headers: Record<string, string> = { ...ask.headers };
    const token = typeof this.#token === "function" ? await this.#token() : this.#token;
    if (token !== undefined) headers["authorization"] = `Bearer ${token}`;
    const init: RequestInit = { method: ask.method ?? "GET", headers };
    if (ask.body !== undefined) init.body = ask.body;
    if (ask.signal !== undefined) init.signal = ask.signal;
    let response: Response;
    try {
      response = await this.#fetch(this.address(ask.path, ask.query), init);
    } catch (cause) {
      if (ask.signal?.aborted) throw cause;
      throw new NetworkError(`cannot reach ${this.#base || "the server"}: ${reason(cause)}`, { cause });
    }
    if (response.ok) return response;
    throw await refusal(response);
  }

  /** Sends a request and reads the answer as JSON. */
  async json<T>(ask: Ask): Promise<T> {
    const response = await this.send({ ...ask, headers: { accept: "application/json", ...ask.headers } });
    let text: string;
    try {
      text = await response.text();
    } catch (cause) {
      if (ask.signal?.aborted) throw cause;
      throw new NetworkError(`the connection broke: ${reason(cause)}`, { cause });
    }
    try {
      return JSON.parse(text) as T;
    } catch (cause) {
      throw new ProtocolError("the server does not answer with JSON", { cause });
    }
  }

  /** Sends JSON and reads JSON. */
  post<T>(path: readonly string[], body: unknown = {}, signal?: AbortSignal): Promise<T> {
    const headers = { "content-type": "application/json" };
    return this.json<T>({ method: "POST", path, headers, body: JSON.stringify(body), signal });
  }
}

/** Tells what went wrong, in words. */
export function reason(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause);
  // Node says `fetch failed` and keeps what happened in the cause.
  return cause.cause instanceof Error ? `${cause.message}: ${cause.cause.message}` : cause.message;
}

async function refusal(response: Response): Promise<ProblemError> {
  const problem: Problem = { status: response.status };
  try {
    const said: unknown = JSON.parse(await response.text());
    if (typeof said === "object" && said !== null && !Array.isArray(said)) Object.assign(problem, said, { status: response.status });
  } catch {
    // Somebody between the server and here answered; the status says what there is to say.
  }
  const seconds = Number(response.headers.get("retry-after") ?? NaN);
  return new ProblemError(problem, Number.isFinite(seconds) ? seconds * 1000 : undefined);
}
