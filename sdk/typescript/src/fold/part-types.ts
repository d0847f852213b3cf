import type { Decision, ErrorInfo, InteractionKind, Level } from "../generated.js";

/** Fields of all parts. */
export interface PartBase {
  /** Id of the part, unique within the run and stable. */
  id: string;
  /** Start time in milliseconds since the epoch. */
  startedAt: number;
  /** End time; undefined while the part may still change. */
  endedAt?: number;
  /** Id of the enclosing step. */
  stepId?: string;
  /** Id of the enclosing subagent run. */
  subagentId?: string;
}

/** A message of the user. */
export interface UserPart extends PartBase {
  kind: "user";
  text: string;
}

/** A text of the assistant, or of another role. */
export interface TextPart extends PartBase {
  kind: "text";
  messageId: string;
  text: string;
  /** Role of the author; undefined for the assistant. */
  role?: string;
  /** `markdown`, `text` or `html`. Default: `markdown`. */
  format?: string;
  /** `success`, `partial_success` or `failed`. */
  status?: string;
  keyPoints?: unknown;
  suggestedActions?: unknown;
  uiSchema?: unknown;
  resultType?: string;
  error?: unknown;
}

/** A thinking text. */
export interface ThinkingPart extends PartBase {
  kind: "thinking";
  messageId: string;
  text: string;
  /** Stage of the thinking. */
  stage?: string;
}

/** A tool call. */
export interface ToolPart extends PartBase {
  kind: "tool";
  callId: string;
  /** Name of the tool; empty until it is known. */
  name: string;
  /** Purpose of the call, to show to people. */
  description?: string;
  /** `preparing` while the arguments are streamed; `abandoned` if the run ended without a result. */
  status: "preparing" | "called" | "running" | "success" | "partial" | "failure" | "abandoned";
  /** The arguments, once they are complete. */
  arguments?: unknown;
  /** The arguments as text, while they are streamed or if they are not a JSON object. */
  argumentsText?: string;
  /** Whether the arguments were truncated. */
  incomplete?: boolean;
  /** Percentage from 0 to 100. */
  progress?: number;
  /** Message of the last progress event. */
  progressMessage?: string;
  /** Streamed output of the tool. */
  output?: string;
  result?: unknown;
  error?: ErrorInfo;
  /** Duration, if the agent reports it. */
  durationMs?: number;
}

/** A block of data: a table, a chart, an image. */
export interface DataPart extends PartBase {
  kind: "data";
  dataType: string;
  data: unknown;
  metadata?: unknown;
  /** Id of the tool call that produced it. */
  callId?: string;
}

/** An interaction: a form or an approval that a person has to answer. */
export interface InteractionPart extends PartBase {
  kind: "interaction";
  interactionId: string;
  /** `form` or `approval`. */
  interactionKind: InteractionKind;
  /** `open`, or the decision that resolved it. */
  status: "open" | Decision;
  title?: string;
  description?: string;
  /** JSON Schema of the answer's values. */
  schema?: unknown;
  /** UI hints of the form. */
  ui?: unknown;
  /** Id of the tool call that needs approval. */
  callId?: string;
  /** Name of the tool that needs approval. */
  name?: string;
  /** Arguments of the tool call. */
  arguments?: unknown;
  /** Why the interaction is requested. */
  reason?: string;
  /** Expiry time in ISO 8601. */
  expiresAt?: string;
  /** The accepted answer. */
  answer?: { decision: Decision; values?: unknown; reason?: string; by?: string };
}

/** A notice, warning or error that does not end the run. */
export interface NoticePart extends PartBase {
  kind: "notice";
  level: Level;
  message: string;
  code?: string;
  domain?: string;
  errorKind?: string;
  retryable?: boolean;
  fatal?: boolean;
  details?: unknown;
  /** Whether the run failed with the same message afterwards, so that it need not be shown twice. */
  isRepeated?: boolean;
}

/** The error that the run failed with. */
export interface ErrorPart extends PartBase {
  kind: "error";
  error: ErrorInfo;
}

/** A run of a subagent. */
export interface SubagentPart extends PartBase {
  kind: "subagent";
  name?: string;
  status: "running" | "completed" | "failed";
  result?: unknown;
  error?: { message: string; code?: string };
}

/** An activity message, which the agent updates with patches. */
export interface ActivityPart extends PartBase {
  kind: "activity";
  messageId: string;
  activityType: string;
  content: unknown;
}

/** A custom event, or an event of an unknown type. */
export interface CustomPart extends PartBase {
  kind: "custom";
  /** Name of the custom event, or the unknown type. */
  name?: string;
  value: unknown;
  /** Dialect of a frame whose type the dialect does not define. */
  dialect?: string;
}

/** A part of a run's conversation. */
export type Part =
  | UserPart
  | TextPart
  | ThinkingPart
  | ToolPart
  | DataPart
  | InteractionPart
  | NoticePart
  | ErrorPart
  | SubagentPart
  | ActivityPart
  | CustomPart;
