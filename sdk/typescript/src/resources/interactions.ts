import type { Interaction, InteractionList, NewAnswer } from "../generated.js";
import type { Http } from "../http.js";
import type { InteractionFilter } from "./types.js";

/** The questions to people. */
export class Interactions {
  readonly #http: Http;

  constructor(http: Http) {
    this.#http = http;
  }

  /** Lists a page of what waits for a person, newest first. */
  list(filter: InteractionFilter = {}, signal?: AbortSignal): Promise<InteractionList> {
    return this.#http.json({ path: ["v1", "interactions"], query: { ...filter }, signal });
  }

  /** Shows a question, also one that was answered. */
  get(run: string, id: string): Promise<Interaction> {
    return this.#http.json({ path: ["v1", "runs", run, "interactions", id] });
  }

  /**
   * Answers a question.
   *
   * The first valid answer wins: a later one is a `ProblemError` with code `interaction_closed`, one that does not fit
   * is `invalid_answer` with `problem.errors`, field by field.
   */
  answer(run: string, id: string, answer: NewAnswer): Promise<Interaction> {
    return this.#http.post(["v1", "runs", run, "interactions", id], answer);
  }
}
