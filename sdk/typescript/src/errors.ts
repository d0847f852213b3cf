/** Base class of all errors that this library throws. */
export class RunwireError extends Error {
  override readonly name: string = "RunwireError";
}

/** The problem details of an error response (RFC 9457). */
export interface Problem {
  /** URL of the code's documentation. */
  type?: string;
  /** Short description of the code. */
  title?: string;
  /** The HTTP status. */
  status: number;
  /** Stable error code: `run_unknown`, `cursor_trimmed`, … */
  code?: string;
  /** Description of this occurrence. */
  detail?: string;
  /** Suggested fix. */
  hint?: string;
  /** Field errors of an invalid answer. */
  errors?: FieldError[];
  /** Oldest record that still exists, if the cursor was trimmed. */
  oldest?: number;
  [other: string]: unknown;
}

/** Validation error of one field of an answer. */
export interface FieldError {
  /** JSON pointer into `values`. */
  pointer: string;
  /** Message to show to a person. */
  message: string;
  [other: string]: unknown;
}

/** The server refused the request. */
export class ProblemError extends RunwireError {
  override readonly name = "ProblemError";
  /** The HTTP status. */
  readonly status: number;
  /** Stable error code; undefined if the response is not from Runwire. */
  readonly code: string | undefined;
  /** Short description of the code. */
  readonly title: string | undefined;
  /** Description of this occurrence. */
  readonly detail: string | undefined;
  /** The whole problem document. */
  readonly problem: Problem;
  /** Delay before the next attempt that the server asked for, in milliseconds. */
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

/** The server is unreachable, or the connection broke. */
export class NetworkError extends RunwireError {
  override readonly name = "NetworkError";
}

/** The response is not a valid Runwire response. */
export class ProtocolError extends RunwireError {
  override readonly name = "ProtocolError";
}

const RETRYABLE_STATUSES = new Set([408, 425, 429, 500, 502, 503, 504]);

/** Returns true if the same request may succeed later. */
export function isRetryable(error: unknown): boolean {
  return error instanceof NetworkError || (error instanceof ProblemError && RETRYABLE_STATUSES.has(error.status));
}
