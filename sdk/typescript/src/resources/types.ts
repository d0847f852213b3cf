import type { RunStatus } from "../generated.js";
import type { Slots } from "../stream/run-stream.js";

/** Filter of a list of runs. */
export interface RunFilter {
  status?: RunStatus | readonly RunStatus[] | undefined;
  agent?: string | undefined;
  thread?: string | undefined;
  /** Prefix of the run's id, thread or agent. */
  prefix?: string | undefined;
  /** Earliest creation time, inclusive, in ISO 8601. */
  since?: string | undefined;
  /** Latest creation time, exclusive, in ISO 8601. */
  until?: string | undefined;
  before?: string | undefined;
  limit?: number | undefined;
}

/** Start and size of a page. */
export interface Paging {
  before?: string | undefined;
  limit?: number | undefined;
}

/** Filter of a list of interactions. Default: the open ones. */
export interface InteractionFilter extends Paging {
  status?: "open" | undefined;
  run?: string | undefined;
  agent?: string | undefined;
  thread?: string | undefined;
}

/** Options of a write. */
export interface WriteOptions {
  /** Dialect of the frames. Default: the server detects it from the first frames. */
  dialect?: string | undefined;
  /** Id of the producer, for exactly-once writes with `epoch` and `seq`. */
  producer?: string | undefined;
  /** Epoch of the producer; a higher one fences lower ones. */
  epoch?: number | undefined;
  /** Index of the first frame among all frames that the producer has sent to this run. */
  seq?: number | undefined;
  /** Completes the run after these frames. */
  end?: boolean | undefined;
  /** Thread of a run that does not exist yet. */
  thread?: string | undefined;
  signal?: AbortSignal | undefined;
}

/** Options of a page of frames. */
export interface PageOptions {
  /** Cursor to start after; `end` returns an empty page whose `next` is the current cursor. */
  after?: string | undefined;
  limit?: number | undefined;
  dialect?: string | undefined;
  /** Which extension frames are included. Default: all. */
  slots?: Slots | undefined;
  /** Return the frames as the producer sent them, byte for byte. */
  raw?: boolean | undefined;
  signal?: AbortSignal | undefined;
}

/** Options of a raw response. */
export interface OpenOptions extends PageOptions {
  /** Framing of the response. Default: `sse`. */
  framing?: "sse" | "ndjson" | undefined;
  /** Wait for further events after the stored ones. Default: true. */
  follow?: boolean | undefined;
  /** NDJSON: wrap each frame in an object with its cursor. */
  cursors?: boolean | undefined;
}

/** A page of frames. */
export interface FramePage<F = unknown> {
  frames: { cursor: string; frame: F }[];
  /** Cursor of the next page; null at the end. */
  next: string | null;
}

/** Health of the server. */
export interface Health {
  status: string;
  [other: string]: unknown;
}
