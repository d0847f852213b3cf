/** The base of everything that this library throws. */
export class RunwireError extends Error {
  override readonly name: string = "RunwireError";
}

/** What a server says when it refuses a request (RFC 9457). */
export interface Problem {
  /** The docs page of the code. */
  type?: string;
  /** The code in words. */
  title?: string;
  /** The HTTP status. */
  status: number;
  /** The stable code: `run_unknown`, `cursor_trimmed`, … */
  code?: string;
  /** What happened. */
  detail?: string;
  /** What to do. */
  hint?: string;
  /** Of an answer that does not fit: what is wrong, field by field. */
  errors?: FieldProblem[];
  /** Of a removed cursor: the oldest record that exists. */
  oldest?: number;
  [other: string]: unknown;
}

/** What is wrong with one field of an answer. */
export interface FieldProblem {
  /** Where, as a JSON pointer into `values`. */
  pointer: string;
  /** What is wrong, for a person. */
  message: string;
  [other: string]: unknown;
}

/** Says that the server refused a request, and why. */
export class ProblemError extends RunwireError {
  override readonly name = "ProblemError";
  /** The HTTP status. */
  readonly status: number;
  /** The stable code; nothing if somebody else than Runwire answered. */
  readonly code: string | undefined;
  /** The code in words. */
  readonly title: string | undefined;
  /** What happened. */
  readonly detail: string | undefined;
  /** All that the server said. */
  readonly problem: Problem;
  /** How long the server asks to wait before the next attempt, in milliseconds. */
  readonly retryAfter: number | undefined;

  constructor(problem: Problem, retryAfter?: number) {
    super(problem.detail ?? problem.title ?? `the server answered ${problem.status}`);
    this.status = problem.status;
    this.code = problem.code;
    this.title = problem.title;
    this.detail = problem.detail;
    this.problem = problem;
    this.retryAfter = retryAfter;
  }
}

/** Says that the server cannot be reached, or that a connection broke. */
export class NetworkError extends RunwireError {
  override readonly name = "NetworkError";
}

/** Says that the answer is not what a Runwire server answers. */
export class ProtocolError extends RunwireError {
  override readonly name = "ProtocolError";
}

const TEMPORARY = new Set([408, 425, 429, 500, 502, 503, 504]);

/** Tells whether the same request may succeed a little later. */
export function isTemporary(error: unknown): boolean {
  return error instanceof NetworkError || (error instanceof ProblemError && TEMPORARY.has(error.status));
}
