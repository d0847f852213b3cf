import type { Decision, ErrorInfo, InteractionKind, Level } from "../generated.js";

interface Basis {
  /** Tells the part from all others of the run, and never changes. */
  id: string;
  /** When it began, in milliseconds since the epoch. */
  startedAt: number;
  /** When it was complete; nothing while more may come. */
  endedAt?: number;
  /** The step it happened in. */
  stepId?: string;
  /** The subagent it happened in. */
  subagentId?: string;
}

/** What the person asked or said. */
export interface UserPart extends Basis {
  kind: "user";
  text: string;
}

/** A text of the assistant, or of another role. */
export interface TextPart extends Basis {
  kind: "text";
  messageId: string;
  text: string;
  /** Whose text it is, unless it is the assistant's. */
  role?: string;
  /** `markdown`, `text` or `html`; markdown without it. */
  format?: string;
  /** `success`, `partial_success` or `failed`. */
  status?: string;
  keyPoints?: unknown;
  suggestedActions?: unknown;
  uiSchema?: unknown;
  resultType?: string;
  error?: unknown;
}

/** A thought. */
export interface ThinkingPart extends Basis {
  kind: "thinking";
  messageId: string;
  text: string;
  /** Which kind of thinking. */
  stage?: string;
}

/** A call of a tool. */
export interface ToolPart extends Basis {
  kind: "tool";
  callId: string;
  /** The tool; empty until it is known. */
  name: string;
  /** What the call is for, for people. */
  description?: string;
  /** `preparing` while the arguments arrive; `abandoned` where the run ended without a result. */
  status: "preparing" | "called" | "running" | "success" | "partial" | "failure" | "abandoned";
  /** What the tool is given, once it is whole. */
  arguments?: unknown;
  /** The arguments as text, while they arrive or where they are no JSON object. */
  argumentsText?: string;
  /** Whether the call was cut off before its arguments were whole. */
  incomplete?: boolean;
  /** From 0 to 100. */
  progress?: number;
  /** What the tool is doing. */
  progressMessage?: string;
  /** What the tool printed. */
  output?: string;
  result?: unknown;
  error?: ErrorInfo;
  /** How long it took, where the source says so. */
  durationMs?: number;
}

/** A block of data: a table, a chart, an image. */
export interface DataPart extends Basis {
  kind: "data";
  dataType: string;
  data: unknown;
  metadata?: unknown;
  /** The call it comes from. */
  callId?: string;
}

/** A question to a person. */
export interface InteractionPart extends Basis {
  kind: "interaction";
  interactionId: string;
  /** A form or an approval. */
  interactionKind: InteractionKind;
  /** `open`, or what became of it. */
  status: "open" | Decision;
  title?: string;
  description?: string;
  /** The answer's JSON Schema. */
  schema?: unknown;
  /** Texts of the form. */
  ui?: unknown;
  /** The call it is about. */
  callId?: string;
  /** The tool it is about. */
  name?: string;
  /** What the tool would be given. */
  arguments?: unknown;
  /** Why it is asked. */
  reason?: string;
  /** When it is too late to answer, as it is on the wire. */
  expiresAt?: string;
  /** The answer that won. */
  answer?: { decision: Decision; values?: unknown; reason?: string; by?: string };
}

/** Something to know of that does not by itself end the run. */
export interface NoticePart extends Basis {
  kind: "notice";
  level: Level;
  message: string;
  code?: string;
  domain?: string;
  errorKind?: string;
  retryable?: boolean;
  fatal?: boolean;
  details?: unknown;
  /** Whether the run then failed with the same words, so that saying them once is enough. */
  isRepeated?: boolean;
}

/** Why the run failed. */
export interface ErrorPart extends Basis {
  kind: "error";
  error: ErrorInfo;
}

/** A subagent at work. */
export interface SubagentPart extends Basis {
  kind: "subagent";
  name?: string;
  status: "running" | "completed" | "failed";
  result?: unknown;
  error?: { message: string; code?: string };
}

/** An activity that the agent shows and changes. */
export interface ActivityPart extends Basis {
  kind: "activity";
  messageId: string;
  activityType: string;
  content: unknown;
}

/** Something of the agent's own, or of a type that nobody here knows. */
export interface CustomPart extends Basis {
  kind: "custom";
  /** Its name, or the unknown type. */
  name?: string;
  value: unknown;
  /** The dialect of a frame that its dialect does not define. */
  dialect?: string;
}

/** What a person reads, piece by piece. */
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
