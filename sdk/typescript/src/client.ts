import type { Agent } from "./generated.js";
import { type ClientOptions, Http } from "./http.js";
import { Interactions } from "./resources/interactions.js";
import { Runs } from "./resources/runs.js";
import { Threads } from "./resources/threads.js";
import type { Info } from "./resources/types.js";

/** A client of one Runwire server. */
export class Runwire {
  /** The runs: read, write, create, cancel, retry. */
  readonly runs: Runs;
  /** The threads that runs are in. */
  readonly threads: Threads;
  /** The questions that runs ask of people. */
  readonly interactions: Interactions;
  /** The agents that the server can start. */
  readonly agents: { list(signal?: AbortSignal): Promise<{ agents: Agent[] }> };
  readonly #http: Http;

  /** Makes a client; nothing is sent yet. */
  constructor(options: ClientOptions) {
    const http = new Http(options);
    this.#http = http;
    this.runs = new Runs(http);
    this.threads = new Threads(http);
    this.interactions = new Interactions(http);
    this.agents = { list: (signal) => http.json({ path: ["v1", "agents"], signal }) };
  }

  /** Asks the server whether it is well. */
  info(): Promise<Info> {
    return this.#http.json({ path: ["healthz"] });
  }

  /** Tells the address of a request, for links and for copying. */
  address(path: readonly string[], query?: Record<string, string | number | boolean | undefined>): string {
    return this.#http.address(path, query);
  }
}
