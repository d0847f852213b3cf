import type { Interaction, InteractionList, NewAnswer } from "../generated.js";
import type { Http } from "../http.js";
import type { InteractionFilter } from "./types.js";

/** API of interactions: forms and approvals that runs request from people. */
export class Interactions {
  readonly #http: Http;

  constructor(http: Http) {
    this.#http = http;
  }

  /** Returns a page of open interactions, newest first. */
  list(filter: InteractionFilter = {}, signal?: AbortSignal): Promise<InteractionList> {
    return this.#http.json({ path: ["v1", "interactions"], query: { ...filter }, signal });
  }

  /** Returns an interaction, open or resolved. */
  get(run: string, id: string): Promise<Interaction> {
    return this.#http.json({ path: ["v1", "runs", run, "interactions", id] });
  }

  /**
   * Answers an interaction.
   *
   * The first valid answer wins. A later one throws a `ProblemError` with code `interaction_closed`; an invalid one
   * throws `invalid_answer` with a list of field errors in `problem.errors`.
   */
  answer(run: string, id: string, answer: NewAnswer): Promise<Interaction> {
    return this.#http.post(["v1", "runs", run, "interactions", id], answer);
  }
}
