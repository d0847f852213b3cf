// Written by scripts/types.mjs from vectors/agio/schema.json: `npm run types`. Do not edit.

/** What every frame has. */
export interface Envelope {
  run_id: string;
  /** ISO 8601 in UTC, with milliseconds and Z. */
  timestamp: string;
  /** Optional; any JSON object. */
  metadata?: {
    /** The thread that the run belongs to. */
    thread_id?: string;
    runwire?: Residue;
    [field: string]: unknown;
  };
}

/** The agent begins; query is what the user asked. (事件详细说明 1) */
export interface RunStartedFrame extends Envelope {
  type: "run_started";
  data: {
    query: string;
  };
}

/** The agent has succeeded; response is its whole answer. (事件详细说明 6) */
export interface RunCompletedFrame extends Envelope {
  type: "run_completed";
  data: {
    response: string;
    metrics: {
      /** Seconds. */
      duration: number;
      steps_count?: number;
      tool_calls_count?: number;
      total_tokens?: number;
      /** Milliseconds. */
      response_latency?: number;
    };
  };
}

/** The agent has failed. (事件类型) */
export interface RunFailedFrame extends Envelope {
  type: "run_failed";
  data: {
    error: string;
    error_type: string;
  };
}

/** A person cancelled the run. (事件类型) */
export interface RunCancelledFrame extends Envelope {
  type: "run_cancelled";
  data: {
    reason?: string;
    [field: string]: unknown;
  };
}

/** A new step of reasoning begins. (事件类型) */
export interface StepStartedFrame extends Envelope {
  type: "step_started";
  data: {
    /** Ordinal of the step, from 1; 1 in a run without steps. */
    step: number;
  };
}

/** A step of reasoning is done. (事件类型) */
export interface StepCompletedFrame extends Envelope {
  type: "step_completed";
  data: {
    /** Ordinal of the step, from 1; 1 in a run without steps. */
    step: number;
  };
}

/** A piece of the model's text. (事件详细说明 2) */
export interface TextDeltaFrame extends Envelope {
  type: "text_delta";
  data: {
    content: string;
    /** Ordinal of the step, from 1; 1 in a run without steps. */
    step: number;
  };
}

/** The model's text is complete; content is all of it. (事件类型) */
export interface TextCompletedFrame extends Envelope {
  type: "text_completed";
  data: {
    content: string;
    /** Ordinal of the step, from 1; 1 in a run without steps. */
    step: number;
  };
}

/** A tool begins to run with these arguments. (事件详细说明 3) */
export interface ToolCallStartedFrame extends Envelope {
  type: "tool_call_started";
  data: {
    tool_name: string;
    tool_call_id: string;
    /** The arguments as an object, never as text. */
    arguments: Record<string, unknown>;
    /** Ordinal of the step, from 1; 1 in a run without steps. */
    step: number;
  };
}

/** A tool has succeeded; result is any JSON. (事件详细说明 4) */
export interface ToolCallCompletedFrame extends Envelope {
  type: "tool_call_completed";
  data: {
    tool_name: string;
    tool_call_id: string;
    /** Any JSON. */
    result: unknown;
    /** Seconds. */
    duration?: number;
    /** Ordinal of the step, from 1; 1 in a run without steps. */
    step: number;
  };
}

/** A tool has failed; the fields of tool_call_completed, and error. (事件类型) */
export interface ToolCallFailedFrame extends Envelope {
  type: "tool_call_failed";
  data: {
    tool_name: string;
    tool_call_id: string;
    error: string;
    /** Any JSON. */
    result?: unknown;
    /** Seconds. */
    duration?: number;
    /** Ordinal of the step, from 1; 1 in a run without steps. */
    step: number;
  };
}

/** Tokens of one model call. (事件详细说明 5) */
export interface UsageUpdateFrame extends Envelope {
  type: "usage_update";
  data: {
    prompt_tokens: number;
    completion_tokens: number;
    total_tokens: number;
    /** Ordinal of the step, from 1; 1 in a run without steps. */
    step: number;
  };
}

/** Figures of the run so far; every field is optional and more are allowed. (事件类型) */
export interface MetricsSnapshotFrame extends Envelope {
  type: "metrics_snapshot";
  data: {
    total_tokens?: number;
    total_prompt_tokens?: number;
    total_completion_tokens?: number;
    current_step?: number;
    tool_calls_count?: number;
    /** Seconds. */
    step_duration?: number;
    timestamp?: number | string;
    [field: string]: unknown;
  };
}

/** An error; a notice, which does not by itself end the run. (事件详细说明 7) */
export interface ErrorFrame extends Envelope {
  type: "error";
  data: {
    error: string;
    error_type: string;
  };
}

/** A warning. (事件类型) */
export interface WarningFrame extends Envelope {
  type: "warning";
  data: {
    message: string;
  };
}

/** Something for debugging; {"runwire": event} is the extension slot for what has no type here. (事件类型) */
export interface DebugFrame extends Envelope {
  type: "debug";
  data: {
    message: string;
    runwire?: Event;
  } | {
    message?: string;
    runwire: Event;
  };
}

/** The canonical event as it stands in the native form; its seq, at, thread_id and run_id may be present and are ignored when read. */
export interface Event {
  type: string;
}

/** Written with fidelity=full only: what the native frame cannot say, as an array of objects. */
export type Residue = Record<string, unknown>[];

/** A frame of a type that the dialect defines. Others are allowed, and handed out as they came. */
export type Frame =
  | RunStartedFrame
  | RunCompletedFrame
  | RunFailedFrame
  | RunCancelledFrame
  | StepStartedFrame
  | StepCompletedFrame
  | TextDeltaFrame
  | TextCompletedFrame
  | ToolCallStartedFrame
  | ToolCallCompletedFrame
  | ToolCallFailedFrame
  | UsageUpdateFrame
  | MetricsSnapshotFrame
  | ErrorFrame
  | WarningFrame
  | DebugFrame;
