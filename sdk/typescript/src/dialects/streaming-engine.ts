// Written by scripts/types.mjs from vectors/streaming-engine/schema.json: `npm run types`. Do not edit.

/** What every frame has. */
export interface Envelope {
  metadata: {
    request_id: string;
    /** Milliseconds since the epoch. */
    timestamp: number;
    /** The frame's number within the request, from 0. */
    sequence: number;
    runwire?: Residue;
  };
}

/** Opens a request in a session. (§1.3) */
export interface SessionStartFrame extends Envelope {
  type: "session_start";
  data: {
    session_id: string;
    request_id: string;
  };
}

/** A piece of the agent's thinking. (§1.3) */
export interface ThinkingFrame extends Envelope {
  type: "thinking";
  data: {
    content: string;
    /** Stage of the thinking, optional. */
    stage?: "reasoning" | "planning" | "analyzing";
  };
}

/** A tool is called with these arguments. (§1.3) */
export interface ToolCallStartFrame extends Envelope {
  type: "tool_call_start";
  data: {
    /** Id of the call. */
    tool_id: string;
    tool_name: string;
    /** What the call does, for people. */
    description?: string;
    /** The arguments as an object, never as text. */
    arguments: Record<string, unknown>;
  };
}

/** How far a long call has come, from 0 to 100. (§1.1) */
export interface ToolCallProgressFrame extends Envelope {
  type: "tool_call_progress";
  data: {
    /** Id of the call. */
    tool_id: string;
    progress: number;
    message: string;
  };
}

/** A call has ended; error is there only when it failed, and metadata may tell duration_ms. (§1.3) */
export interface ToolCallEndFrame extends Envelope {
  type: "tool_call_end";
  data: {
    /** Id of the call. */
    tool_id: string;
    status: "success";
    /** What the tool returned: an object in the document, and any value where the tool of another system returned one. */
    result?: unknown;
    error?: never;
  } | {
    /** Id of the call. */
    tool_id: string;
    status: "failed";
    /** What the tool returned: an object in the document, and any value where the tool of another system returned one. */
    result?: unknown;
    error?: {
      message: string;
      code?: string;
    };
  };
  metadata: {
    request_id: string;
    /** Milliseconds since the epoch. */
    timestamp: number;
    /** The frame's number within the request, from 0. */
    sequence: number;
    runwire?: Residue;
    /** How long the call took. */
    duration_ms?: number;
  };
}

/** A piece of the answer. (§1.3) */
export interface ContentFrame extends Envelope {
  type: "content";
  data: {
    content: string;
    /** markdown where it is left out. */
    format?: "markdown" | "text" | "html";
    /** Whether this is the last piece. */
    is_complete?: boolean;
  };
}

/** A block of structured data such as a table or a chart. (§1.3) */
export interface DataFrame extends Envelope {
  type: "data";
  data: {
    data_type: "dataframe" | "chart" | "image" | "custom";
    /** Its shape depends on data_type; any value where another system sent one. */
    data: unknown;
    metadata?: Record<string, unknown>;
  };
}

/** An error; recoverable tells a notice from one that ends the request. (§1.3) */
export interface ErrorFrame extends Envelope {
  type: "error";
  data: {
    error_type: "validation" | "execution" | "timeout" | "system";
    /** What people may read. */
    message: string;
    /** For debugging. */
    details?: Record<string, unknown>;
    recoverable?: boolean;
  };
}

/** The request is over. (§1.3) */
export interface SessionEndFrame extends Envelope {
  type: "session_end";
  data: {
    status: "completed" | "error" | "cancelled";
    summary?: {
      total_tokens?: number;
      duration_ms?: number;
      tool_calls?: number;
      [field: string]: unknown;
    };
  };
}

/** The extension slot: data is a canonical event that has no type of its own here; the documented handler ignores unknown types. (§3.2) */
export interface RunwireFrame extends Envelope {
  type: "runwire";
  data: Event;
}

/** The canonical event as it stands in the native form; its seq, at, thread_id and run_id may be present and are ignored when read. */
export interface Event {
  type: string;
}

/** Written with fidelity=full only: what the native frame cannot say, as an array of objects. */
export type Residue = Record<string, unknown>[];

/** A frame of a type that the dialect defines. Others are allowed, and handed out as they came. */
export type Frame =
  | SessionStartFrame
  | ThinkingFrame
  | ToolCallStartFrame
  | ToolCallProgressFrame
  | ToolCallEndFrame
  | ContentFrame
  | DataFrame
  | ErrorFrame
  | SessionEndFrame
  | RunwireFrame;
