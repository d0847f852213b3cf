// Written by scripts/types.mjs from vectors/social-app/schema.json: `npm run types`. Do not edit.

/** What every frame has. */
export interface Envelope {
  runwire?: Residue;
}

/** Opens a run of the thread. (§3.1) */
export interface RunStartedFrame extends Envelope {
  type: "RUN_STARTED";
  threadId: string;
  runId: string;
}

/** Ends a run that succeeded. (§3.1) */
export interface RunFinishedFrame extends Envelope {
  type: "RUN_FINISHED";
  threadId: string;
  runId: string;
}

/** Ends a run that failed, or, with code CANCELLED, one that was stopped; code is always there, null where unknown. (§3.1) */
export interface RunErrorFrame extends Envelope {
  type: "RUN_ERROR";
  threadId: string;
  runId: string;
  message: string;
  code: string | null;
}

/** Opens a stage of the run, router or worker; the step of another system is worker, with its own name in name. (§3.2) */
export interface StepStartedFrame extends Envelope {
  type: "STEP_STARTED";
  threadId: string;
  runId: string;
  stepName: "router" | "worker";
  name?: string;
}

/** Closes a stage of the run. (§3.2) */
export interface StepFinishedFrame extends Envelope {
  type: "STEP_FINISHED";
  threadId: string;
  runId: string;
  stepName: "router" | "worker";
  name?: string;
}

/** Announces a tool call. (§3.3) */
export interface ToolCallStartFrame extends Envelope {
  type: "TOOL_CALL_START";
  threadId: string;
  runId: string;
  messageId: string;
  toolCallId: string;
  toolCallName: string;
  stage: "router" | "worker";
}

/** Carries a call's whole arguments, once, as an object. (§3.3) */
export interface ToolCallArgsFrame extends Envelope {
  type: "TOOL_CALL_ARGS";
  threadId: string;
  runId: string;
  messageId: string;
  toolCallId: string;
  toolCallName: string;
  args: Record<string, unknown>;
  stage: "router" | "worker";
}

/** Says that a call's arguments are complete. (§3.3) */
export interface ToolCallEndFrame extends Envelope {
  type: "TOOL_CALL_END";
  threadId: string;
  runId: string;
  messageId: string;
  toolCallId: string;
  toolCallName: string;
  stage: "router" | "worker";
}

/** Reports how a call ended; tool_call_id equals the call's toolCallId. (§3.3) */
export interface ToolCallResultFrame extends Envelope {
  type: "TOOL_CALL_RESULT";
  threadId: string;
  runId: string;
  messageId: string;
  role: "tool";
  stage: "router" | "worker";
  tool_name: string;
  tool_call_id: string;
  tool_call_args: Record<string, unknown>;
  status: "success" | "failure" | "partial";
  result: string;
  error: string | null;
}

/** Carries a whole answer at once; this dialect has no text deltas. (§3.4) */
export interface TextMessageEndFrame extends Envelope {
  type: "TEXT_MESSAGE_END";
  threadId: string;
  runId: string;
  messageId: string;
  role: "assistant";
  stage: "router" | "worker";
  status: "success" | "partial_success" | "failed";
  answer: string;
  key_points: unknown[];
  result_type: "execution_report" | "clarification" | "error_report" | "unknown";
  suggested_actions: unknown[];
  error: string | Record<string, unknown> | null;
  ui_schema: Record<string, unknown>;
}

/** Carries the whole shared state; any JSON value. (§3.5) */
export interface StateSnapshotFrame extends Envelope {
  type: "STATE_SNAPSHOT";
  threadId: string;
  runId: string;
  snapshot: unknown;
}

/** Carries all messages of the conversation. (§3.5) */
export interface MessagesSnapshotFrame extends Envelope {
  type: "MESSAGES_SNAPSHOT";
  threadId: string;
  runId: string;
  messages: Record<string, unknown>[];
}

/** The extension form of AG-UI; names that start with runwire. are slots whose value is a canonical event. (§4) */
export interface CustomFrame extends Envelope {
  type: "CUSTOM";
  threadId: string;
  runId: string;
  name: string;
  value: unknown;
}

/** The extension form that passes a foreign frame through as it came. (§4) */
export interface RawFrame extends Envelope {
  type: "RAW";
  threadId: string;
  runId: string;
  event: unknown;
  source?: string;
}

/** What full fidelity adds to a native frame so that it can be read back exactly. (§4) */
export type Residue = Record<string, unknown>[];

/** A frame of a type that the dialect defines. Others are allowed, and handed out as they came. */
export type Frame =
  | RunStartedFrame
  | RunFinishedFrame
  | RunErrorFrame
  | StepStartedFrame
  | StepFinishedFrame
  | ToolCallStartFrame
  | ToolCallArgsFrame
  | ToolCallEndFrame
  | ToolCallResultFrame
  | TextMessageEndFrame
  | StateSnapshotFrame
  | MessagesSnapshotFrame
  | CustomFrame
  | RawFrame;
