// Written by scripts/types.mjs from vectors/ag-ui/schema.json: `npm run types`. Do not edit.

/** What every frame has. */
export interface Envelope {
  /** Milliseconds since the epoch, an integer; an ISO string is fatal to the official client. */
  timestamp?: number;
  rawEvent?: unknown;
  metadata?: Metadata;
}

/** Opens a run; the user's message, where known, is in input.messages. (RunStartedEvent) */
export interface RunStartedFrame extends Envelope {
  type: "RUN_STARTED";
  threadId: string;
  runId: string;
  parentRunId?: string;
  protocolVersion?: string;
  input?: RunAgentInput;
}

/** Closes a run that did not fail: it succeeded, waits for answers (interrupt) or was cancelled. (RunFinishedEvent) */
export interface RunFinishedFrame extends Envelope {
  type: "RUN_FINISHED";
  threadId: string;
  runId: string;
  result?: unknown;
  outcome?: Outcome;
  usage?: TokenUsage[];
}

/** Ends a run that failed. (RunErrorEvent) */
export interface RunErrorFrame extends Envelope {
  type: "RUN_ERROR";
  message: string;
  code?: string;
  usage?: TokenUsage[];
}

/** Opens a named step; no two open steps share a name. (StepStartedEvent) */
export interface StepStartedFrame extends Envelope {
  type: "STEP_STARTED";
  stepName: string;
  subagentRunId?: string;
}

/** Closes the open step of that name. (StepFinishedEvent) */
export interface StepFinishedFrame extends Envelope {
  type: "STEP_FINISHED";
  stepName: string;
  subagentRunId?: string;
}

/** Opens a streamed text message. (TextMessageStartEvent) */
export interface TextMessageStartFrame extends Envelope {
  type: "TEXT_MESSAGE_START";
  messageId: string;
  role?: "developer" | "system" | "assistant" | "user";
  name?: string;
  subagentRunId?: string;
}

/** Appends a fragment to an open text message. (TextMessageContentEvent) */
export interface TextMessageContentFrame extends Envelope {
  type: "TEXT_MESSAGE_CONTENT";
  messageId: string;
  delta: string;
  subagentRunId?: string;
}

/** Closes a streamed text message. (TextMessageEndEvent) */
export interface TextMessageEndFrame extends Envelope {
  type: "TEXT_MESSAGE_END";
  messageId: string;
  subagentRunId?: string;
}

/** Opens a tool call whose arguments follow. (ToolCallStartEvent) */
export interface ToolCallStartFrame extends Envelope {
  type: "TOOL_CALL_START";
  toolCallId: string;
  toolCallName: string;
  parentMessageId?: string;
  subagentRunId?: string;
}

/** Appends a fragment of a call's arguments, which joined are one JSON text. (ToolCallArgsEvent) */
export interface ToolCallArgsFrame extends Envelope {
  type: "TOOL_CALL_ARGS";
  toolCallId: string;
  delta: string;
  subagentRunId?: string;
}

/** Says that a call's arguments are complete. (ToolCallEndEvent) */
export interface ToolCallEndFrame extends Envelope {
  type: "TOOL_CALL_END";
  toolCallId: string;
  subagentRunId?: string;
}

/** Carries what a tool returned, as a message of its own; content is text or a list of parts, never a bare object. (ToolCallResultEvent) */
export interface ToolCallResultFrame extends Envelope {
  type: "TOOL_CALL_RESULT";
  messageId: string;
  toolCallId: string;
  content: string | ContentPart[];
  role?: "tool";
  subagentRunId?: string;
}

/** Replaces the shared state; any JSON value, null included. (StateSnapshotEvent) */
export interface StateSnapshotFrame extends Envelope {
  type: "STATE_SNAPSHOT";
  snapshot: unknown;
  subagentRunId?: string;
}

/** Changes the shared state by a JSON Patch. (StateDeltaEvent) */
export interface StateDeltaFrame extends Envelope {
  type: "STATE_DELTA";
  delta: JsonPatch;
  subagentRunId?: string;
}

/** Carries all messages of the conversation, in order. (MessagesSnapshotEvent) */
export interface MessagesSnapshotFrame extends Envelope {
  type: "MESSAGES_SNAPSHOT";
  messages: Message[];
}

/** Sets the content of an activity, progress that is no conversation. (ActivitySnapshotEvent) */
export interface ActivitySnapshotFrame extends Envelope {
  type: "ACTIVITY_SNAPSHOT";
  messageId: string;
  activityType: string;
  content: Record<string, unknown>;
  replace?: boolean;
  subagentRunId?: string;
}

/** Changes an activity's content by a JSON Patch. (ActivityDeltaEvent) */
export interface ActivityDeltaFrame extends Envelope {
  type: "ACTIVITY_DELTA";
  messageId: string;
  activityType: string;
  patch: JsonPatch;
  subagentRunId?: string;
}

/** Opens a span of reasoning. (ReasoningStartEvent) */
export interface ReasoningStartFrame extends Envelope {
  type: "REASONING_START";
  messageId: string;
  subagentRunId?: string;
}

/** Opens a streamed reasoning message. (ReasoningMessageStartEvent) */
export interface ReasoningMessageStartFrame extends Envelope {
  type: "REASONING_MESSAGE_START";
  messageId: string;
  role: "reasoning";
  subagentRunId?: string;
}

/** Appends a fragment to an open reasoning message. (ReasoningMessageContentEvent) */
export interface ReasoningMessageContentFrame extends Envelope {
  type: "REASONING_MESSAGE_CONTENT";
  messageId: string;
  delta: string;
  subagentRunId?: string;
}

/** Closes a streamed reasoning message. (ReasoningMessageEndEvent) */
export interface ReasoningMessageEndFrame extends Envelope {
  type: "REASONING_MESSAGE_END";
  messageId: string;
  subagentRunId?: string;
}

/** Closes a span of reasoning. (ReasoningEndEvent) */
export interface ReasoningEndFrame extends Envelope {
  type: "REASONING_END";
  messageId: string;
  subagentRunId?: string;
}

/** Carries a provider's opaque reasoning artefact for a message or a tool call. (ReasoningEncryptedValueEvent) */
export interface ReasoningEncryptedValueFrame extends Envelope {
  type: "REASONING_ENCRYPTED_VALUE";
  subtype: "tool-call" | "message";
  entityId: string;
  encryptedValue: string;
  subagentRunId?: string;
}

/** Announces one invocation of a subagent. (SubagentStartedEvent) */
export interface SubagentStartedFrame extends Envelope {
  type: "SUBAGENT_STARTED";
  subagentRunId: string;
  name: string;
  description?: string;
  parentSubagentRunId?: string;
  parentToolCallId?: string;
  parentMessageId?: string;
}

/** Ends a subagent's part of this run: done, or suspended until an answer comes. (SubagentFinishedEvent) */
export interface SubagentFinishedFrame extends Envelope {
  type: "SUBAGENT_FINISHED";
  subagentRunId: string;
  result?: unknown;
  outcome?: SubagentOutcome;
}

/** Reports that a subagent failed; the run may go on. (SubagentErrorEvent) */
export interface SubagentErrorFrame extends Envelope {
  type: "SUBAGENT_ERROR";
  subagentRunId: string;
  message: string;
  code?: string;
}

/** Passes a foreign frame through as it came. (RawEvent) */
export interface RawFrame extends Envelope {
  type: "RAW";
  event: unknown;
  source?: string;
  subagentRunId?: string;
}

/** An application's own event; names that start with runwire. are extension slots whose value is a canonical event. (CustomEvent) */
export interface CustomFrame extends Envelope {
  type: "CUSTOM";
  name: string;
  value: unknown;
  subagentRunId?: string;
}

/** Extra information, open by key; runwire holds what full fidelity adds. (Metadata) */
export interface Metadata {
  runwire?: Record<string, unknown>[] | Record<string, unknown>;
  [field: string]: unknown;
}

/** The request that a run answers, echoed. (RunAgentInput) */
export interface RunAgentInput {
  threadId: string;
  runId: string;
  messages: Message[];
  protocolVersion?: string;
  parentRunId?: string;
  state?: unknown;
  tools?: Tool[];
  context?: Context[];
  forwardedProps?: unknown;
  resume?: ResumeEntry[];
}

/** A tool that the agent may call. (Tool) */
export interface Tool {
  name: string;
  description: string;
  parameters?: unknown;
  metadata?: Metadata;
}

/** A named piece of ambient information. (Context) */
export interface Context {
  description: string;
  value: string;
}

/** The answer to one interrupt. (ResumeEntry) */
export interface ResumeEntry {
  interruptId: string;
  status: "resolved" | "cancelled";
  payload?: unknown;
  metadata?: Metadata;
}

/** Why a run ended: success, interrupt (at least one) or cancelled. (RunFinishedOutcome) */
export type Outcome = {
  type: "success" | "cancelled";
  pendingToolCallIds?: string[];
} | {
  type: "interrupt";
  pendingToolCallIds?: string[];
  interrupts: Interrupt[];
};

/** Something that a run needs from a person before it can go on. (Interrupt) */
export interface Interrupt {
  id: string;
  reason: string;
  message?: string;
  toolCallId?: string;
  responseSchema?: Record<string, unknown>;
  expiresAt?: string;
  metadata?: Metadata;
  subagentRunId?: string;
}

/** Token counts of one provider and model. (TokenUsage) */
export interface TokenUsage {
  provider?: string;
  model?: string;
  inputTokens?: number;
  outputTokens?: number;
  totalTokens?: number;
  reasoningTokens?: number;
  cachedInputTokens?: number;
  cacheWriteInputTokens?: number;
  [field: string]: unknown;
}

/** Why a subagent's part of the run ended. (SubagentFinishedOutcome) */
export interface SubagentOutcome {
  type: "success" | "suspended";
  interruptIds?: string[];
}

/** Any message of a conversation, told apart by role. (Message) */
export type Message = {
  id: string;
  role: "developer";
  name?: string;
  encryptedValue?: string;
  metadata?: Metadata;
  subagentRunId?: string;
  content: string;
} | {
  id: string;
  role: "system";
  name?: string;
  encryptedValue?: string;
  metadata?: Metadata;
  subagentRunId?: string;
  content: string;
} | {
  id: string;
  role: "assistant";
  name?: string;
  encryptedValue?: string;
  metadata?: Metadata;
  subagentRunId?: string;
  content?: string;
  toolCalls?: ToolCall[];
} | {
  id: string;
  role: "user";
  name?: string;
  encryptedValue?: string;
  metadata?: Metadata;
  subagentRunId?: string;
  content: string | ContentPart[];
} | {
  id: string;
  role: "tool";
  name?: string;
  encryptedValue?: string;
  metadata?: Metadata;
  subagentRunId?: string;
  content: string | ContentPart[];
  toolCallId: string;
  error?: string;
} | {
  id: string;
  role: "activity";
  name?: string;
  encryptedValue?: string;
  metadata?: Metadata;
  subagentRunId?: string;
  activityType: string;
  content: Record<string, unknown>;
} | {
  id: string;
  role: "reasoning";
  name?: string;
  encryptedValue?: string;
  metadata?: Metadata;
  subagentRunId?: string;
  content: string;
};

/** A call that an assistant message made; its arguments are JSON text. (ToolCall) */
export interface ToolCall {
  id: string;
  type: "function";
  function: {
    name: string;
    arguments: string;
  };
  encryptedValue?: string;
  metadata?: Metadata;
}

/** One part of a message body: text, image, audio, video or document. (ContentPart) */
export type ContentPart = {
  type: "text";
  id?: string;
  metadata?: unknown;
  text: string;
} | {
  type: "image" | "audio" | "video" | "document";
  id?: string;
  metadata?: unknown;
  source: PartSource;
};

/** Where a part's bytes come from: inline, a URL, or a provider's file handle. (PartSource) */
export type PartSource = {
  type: "data";
  value: string;
  mimeType: string;
  provider?: string;
} | {
  type: "url" | "file";
  value: string;
  mimeType?: string;
  provider?: string;
};

/** An ordered list of RFC 6902 operations; an empty list changes nothing. (JsonPatch) */
export type JsonPatch = JsonPatchOperation[];

/** One RFC 6902 operation; members that its op does not define are ignored. (JsonPatchOperation) */
export type JsonPatchOperation = {
  op: "add" | "replace" | "test";
  path: string;
  from?: string;
  value: unknown;
} | {
  op: "remove";
  path: string;
  from?: string;
} | {
  op: "move" | "copy";
  path: string;
  from: string;
};

/** A frame of a type that the dialect defines. Others are allowed, and handed out as they came. */
export type Frame =
  | RunStartedFrame
  | RunFinishedFrame
  | RunErrorFrame
  | StepStartedFrame
  | StepFinishedFrame
  | TextMessageStartFrame
  | TextMessageContentFrame
  | TextMessageEndFrame
  | ToolCallStartFrame
  | ToolCallArgsFrame
  | ToolCallEndFrame
  | ToolCallResultFrame
  | StateSnapshotFrame
  | StateDeltaFrame
  | MessagesSnapshotFrame
  | ActivitySnapshotFrame
  | ActivityDeltaFrame
  | ReasoningStartFrame
  | ReasoningMessageStartFrame
  | ReasoningMessageContentFrame
  | ReasoningMessageEndFrame
  | ReasoningEndFrame
  | ReasoningEncryptedValueFrame
  | SubagentStartedFrame
  | SubagentFinishedFrame
  | SubagentErrorFrame
  | RawFrame
  | CustomFrame;
