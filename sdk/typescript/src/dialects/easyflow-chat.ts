// Written by scripts/types.mjs from vectors/easyflow-chat/schema.json: `npm run types`. Do not edit.

/** What every frame has. */
export interface Envelope {
  protocol: "easyflow-chat";
  version: string;
  conversation_id: string;
  message_id?: string;
  index?: number;
  meta?: Meta;
}

/** The model's thinking: a delta, or the whole as content where no deltas came. (§6.1) */
export interface LlmThinkingFrame extends Envelope {
  domain: "llm";
  type: "thinking";
  payload: {
    delta: string;
    content?: never;
  } | {
    delta?: never;
    content: string;
  };
}

/** The model's answer: a delta, or the whole as content where no deltas came. (§6.2) */
export interface LlmMessageFrame extends Envelope {
  domain: "llm";
  type: "message";
  payload: {
    delta: string;
    content?: never;
  } | {
    delta?: never;
    content: string;
  };
}

/** A complete tool call. (§7.1) */
export interface ToolCallFrame extends Envelope {
  domain: "tool";
  type: "tool_call";
  payload: {
    tool_call_id: string;
    name: string;
    arguments: Record<string, unknown>;
  };
}

/** What a call returned; with status error, payload.error says why. (§7.2) */
export interface ToolResultFrame extends Envelope {
  domain: "tool";
  type: "tool_result";
  payload: {
    tool_call_id: string;
    status: "success";
    result: unknown;
    error?: string | Record<string, unknown>;
  } | {
    tool_call_id: string;
    status: "error";
    result?: unknown;
    error: string | Record<string, unknown>;
  } | {
    tool_call_id: string;
    status: "error";
    result: unknown;
    error?: string | Record<string, unknown>;
  };
}

/** A system error; it ends the run unless meta.terminal is false. (§8.1) */
export interface SystemErrorFrame extends Envelope {
  domain: "system";
  type: "error";
  payload: {
    code: string;
    message: string;
    retryable?: boolean;
    detail?: Record<string, unknown>;
  };
}

/** The state of the run; running starts it, suspended and resumed frame an interaction. (§8.2) */
export interface SystemStatusFrame extends Envelope {
  domain: "system";
  type: "status";
  payload: {
    state: "initializing" | "running" | "suspended" | "resumed";
  };
}

/** The end of the run, with its figures in meta; meta.status is cancelled for one that was stopped. (§13) */
export interface SystemDoneFrame extends Envelope {
  domain: "system";
  type: "done";
  payload: Record<string, unknown>;
}

/** A business error such as a used-up quota; it ends the run only on the SSE event error. (§9) */
export interface BusinessErrorFrame extends Envelope {
  domain: "business";
  type: "error";
  payload: {
    code: string;
    message: string;
    retryable?: boolean;
    detail?: Record<string, unknown>;
  };
}

/** A workflow node starts, is suspended, resumes or ends; node_id is the step's name. (§10) */
export interface WorkflowStatusFrame extends Envelope {
  domain: "workflow";
  type: "status";
  payload: {
    node_id: string;
    state: "start" | "suspend" | "resume" | "end";
    reason?: string;
  };
}

/** Asks a person to fill in a form, and suspends the run; schema is a JSON Schema. (§11.1) */
export interface InteractionFormRequestFrame extends Envelope {
  domain: "interaction";
  type: "form_request";
  payload: {
    form_id: string;
    schema: Record<string, unknown>;
    title?: string;
    description?: string;
    ui?: Record<string, unknown>;
  };
}

/** Takes a form back. (§11.2) */
export interface InteractionFormCancelFrame extends Envelope {
  domain: "interaction";
  type: "form_cancel";
  payload: {
    form_id: string;
  };
}

/** The extension slot: payload is a canonical event that this dialect has no form for. (§16) */
export interface DebugRunwireFrame extends Envelope {
  domain: "debug";
  type: "runwire";
  payload: {
    type: string;
  };
}

/** Figures and marks beside the payload; runwire holds what full fidelity adds. (§4.2) */
export interface Meta {
  run_id?: string;
  terminal?: boolean;
  status?: string;
  prompt_tokens?: number;
  completion_tokens?: number;
  total_tokens?: number;
  latency_ms?: number;
  runwire?: Record<string, unknown>[] | Record<string, unknown>;
  [field: string]: unknown;
}

/** A frame of a type that the dialect defines. Others are allowed, and handed out as they came. */
export type Frame =
  | LlmThinkingFrame
  | LlmMessageFrame
  | ToolCallFrame
  | ToolResultFrame
  | SystemErrorFrame
  | SystemStatusFrame
  | SystemDoneFrame
  | BusinessErrorFrame
  | WorkflowStatusFrame
  | InteractionFormRequestFrame
  | InteractionFormCancelFrame
  | DebugRunwireFrame;
