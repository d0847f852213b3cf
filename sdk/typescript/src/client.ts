import type { Agent } from "./generated.js";
import { type ClientOptions, Http } from "./http.js";
import { Interactions } from "./resources/interactions.js";
import { Runs } from "./resources/runs.js";
import { Threads } from "./resources/threads.js";
import type { Health } from "./resources/types.js";

/** Client of one Runwire server. */
export class Runwire {
  /** Reads, writes, creates, cancels and retries runs. */
  readonly runs: Runs;
  /** Reads, writes, creates and deletes threads. */
  readonly threads: Threads;
  /** Lists and answers interactions. */
  readonly interactions: Interactions;
  /** Lists the agents that the server can start. */
  readonly agents: { list(signal?: AbortSignal): Promise<{ agents: Agent[] }> };
  readonly #http: Http;

  /** Creates a client without sending a request. */
  constructor(options: ClientOptions) {
    const http = new Http(options);
    this.#http = http;
    this.runs = new Runs(http);
    this.threads = new Threads(http);
    this.interactions = new Interactions(http);
    this.agents = { list: (signal) => http.json({ path: ["v1", "agents"], signal }) };
  }

  /** Returns the health of the server. */
  health(): Promise<Health> {
    return this.#http.json({ path: ["healthz"] });
  }

  /** Returns the URL of a request. */
  urlOf(path: readonly string[], query?: Record<string, string | number | boolean | undefined>): string {
    return this.#http.urlOf(path, query);
  }
}
