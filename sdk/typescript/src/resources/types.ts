import type { RunStatus } from "../generated.js";
import type { Slots } from "../stream/stream.js";

/** Which runs are listed. */
export interface RunFilter {
  status?: RunStatus | readonly RunStatus[] | undefined;
  agent?: string | undefined;
  thread?: string | undefined;
  /** Only runs whose id, thread or agent begins so. */
  prefix?: string | undefined;
  /** Only runs created then or later, in ISO 8601. */
  since?: string | undefined;
  /** Only runs created before, in ISO 8601. */
  until?: string | undefined;
  before?: string | undefined;
  limit?: number | undefined;
}

/** Where a page begins and how long it is. */
export interface Paging {
  before?: string | undefined;
  limit?: number | undefined;
}

/** Which questions are listed; those that are open without more. */
export interface InteractionFilter extends Paging {
  status?: "open" | undefined;
  run?: string | undefined;
  agent?: string | undefined;
  thread?: string | undefined;
}

/** How frames are written. */
export interface WriteOptions {
  /** The frames' dialect; without it, the server tells it by the first frames. */
  dialect?: string | undefined;
  /** The producer's name, for writing exactly once; `epoch` and `seq` then belong to it. */
  producer?: string | undefined;
  /** The producer's incarnation: a higher number takes over. */
  epoch?: number | undefined;
  /** The index of the first frame in everything that the producer has sent to this run. */
  seq?: number | undefined;
  /** Whether the run is complete with these frames. */
  end?: boolean | undefined;
  /** The thread of a run that does not exist yet. */
  thread?: string | undefined;
  signal?: AbortSignal | undefined;
}

/** Which part of a run is read as a page. */
export interface PageOptions {
  /** Begin after this cursor; of the page at the `end`, `next` tells the place. */
  after?: string | undefined;
  limit?: number | undefined;
  dialect?: string | undefined;
  /** Which extension frames are shown: everything that the dialect cannot say natively, without it. */
  slots?: Slots | undefined;
  /** The frames byte for byte as the producer sent them. */
  raw?: boolean | undefined;
  signal?: AbortSignal | undefined;
}

/** Which bytes of a run are asked for, and in which framing. */
export interface OpenOptions extends PageOptions {
  /** Server-sent events without it; `ndjson` is one frame a line. */
  framing?: "sse" | "ndjson" | undefined;
  /** Whether to wait for more than is there now; true without it. */
  follow?: boolean | undefined;
  /** NDJSON: wrap each frame with its cursor. */
  cursors?: boolean | undefined;
}

/** A part of a run. */
export interface FramePage<F = unknown> {
  frames: { cursor: string; frame: F }[];
  /** The cursor to go on from; nothing at the end. */
  next: string | null;
}

/** What the server says of itself. */
export interface Info {
  status: string;
  [other: string]: unknown;
}
