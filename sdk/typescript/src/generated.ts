// Written by scripts/types.mjs from crates/*/schema/*.schema.json: `npm run types`. Do not edit.

/** What every event has around it. */
export interface Envelope {
  /** The record's place in its thread. */
  seq: number;
  /** When it was written. */
  at: string;
  /** The thread. */
  thread_id: string;
  /** The run. */
  run_id: string;
  /** The step it happened in. */
  step_id?: string;
  /** The subagent it happened in. */
  subagent_run_id?: string;
  /** Fields of the source that the model has no name for. */
  extra?: Record<string, unknown>;
}

/** The run begins. */
export interface RunStartedEvent extends Envelope {
  type: "run.started";
  /** What the person asked. */
  message?: string;
  /** The id of the person's message. */
  message_id?: string;
  /** Which agent runs. */
  agent?: string;
  /** The whole input, in the source's form. */
  input?: unknown;
  /** The run that this one goes on from. */
  parent_run_id?: string;
}

/** The run came to its end. */
export interface RunCompletedEvent extends Envelope {
  type: "run.completed";
  /** The whole answer, where the source says it. */
  reply?: string;
  /** A result beside the text. */
  result?: unknown;
  /** The run's figures. */
  summary?: Summary;
}

/** The run failed. */
export interface RunFailedEvent extends Envelope {
  type: "run.failed";
  /** Why. */
  error: ErrorInfo;
  /** The run's figures. */
  summary?: Summary;
}

/** The run was cancelled. */
export interface RunCancelledEvent extends Envelope {
  type: "run.cancelled";
  /** Why. */
  reason?: string;
  /** The run's figures. */
  summary?: Summary;
}

/** The run waits for a person. */
export interface RunSuspendedEvent extends Envelope {
  type: "run.suspended";
  /** Why. */
  reason?: string;
  /** The questions it waits for. */
  interaction_ids: string[];
}

/** The run goes on. */
export interface RunResumedEvent extends Envelope {
  type: "run.resumed";
  /** Why. */
  reason?: string;
  /** The questions that were answered. */
  interaction_ids: string[];
}

/** Somebody asked the run to stop. */
export interface RunCancelRequestedEvent extends Envelope {
  type: "run.cancel_requested";
  /** Why. */
  reason?: string;
  /** Who. */
  by?: string;
}

/** The run says how far it is. */
export interface RunStatusEvent extends Envelope {
  type: "run.status";
  /** `initializing`, `running`, or the source's own word. */
  state: string;
}

/** A step begins. */
export interface StepStartedEvent extends Envelope {
  type: "step.started";
  /** Its name. */
  name: string;
  /** The step it happened in. */
  step_id: string;
}

/** A step ends. */
export interface StepFinishedEvent extends Envelope {
  type: "step.finished";
  /** Its name. */
  name: string;
  /** Why it failed, if it did. */
  error?: ErrorInfo;
  /** The step it happened in. */
  step_id: string;
}

/** A text begins. */
export interface TextStartedEvent extends Envelope {
  type: "text.started";
  /** Which message it is. */
  message_id: string;
  /** Whose text it is; the assistant's unless said. */
  role?: string;
}

/** A piece of a text. */
export interface TextDeltaEvent extends Envelope {
  type: "text.delta";
  /** Which message it belongs to. */
  message_id: string;
  /** The piece. */
  content: string;
  /** `markdown`, `text` or `html`. */
  format?: string;
}

/** A text is complete. */
export interface TextFinishedEvent extends Envelope {
  type: "text.finished";
  /** Which message it is. */
  message_id: string;
  /** The whole text, only where it replaces the pieces. */
  content?: string;
  /** `success`, `partial_success` or `failed`. */
  status?: string;
  /** What kind of answer it is. */
  result_type?: string;
  /** Its main points. */
  key_points?: unknown;
  /** What the person could do next. */
  suggested_actions?: unknown;
  /** What to draw. */
  ui_schema?: unknown;
  /** What went wrong, in the source's form. */
  error?: unknown;
}

/** Thinking begins. */
export interface ThinkingStartedEvent extends Envelope {
  type: "thinking.started";
  /** Which thought it is. */
  message_id: string;
  /** Which kind of thinking. */
  stage?: string;
}

/** A piece of thinking. */
export interface ThinkingDeltaEvent extends Envelope {
  type: "thinking.delta";
  /** Which thought it belongs to. */
  message_id: string;
  /** The piece. */
  content: string;
  /** Which kind of thinking. */
  stage?: string;
}

/** A thought is complete. */
export interface ThinkingFinishedEvent extends Envelope {
  type: "thinking.finished";
  /** Which thought it is. */
  message_id: string;
  /** The whole thought, only where it replaces the pieces. */
  content?: string;
}

/** The arguments of a call begin to arrive. */
export interface ToolArgsStartedEvent extends Envelope {
  type: "tool.args_started";
  /** Which call. */
  call_id: string;
  /** The tool, once it is known. */
  name?: string;
  /** The message that calls it. */
  message_id?: string;
}

/** A piece of the arguments' JSON text. */
export interface ToolArgsDeltaEvent extends Envelope {
  type: "tool.args_delta";
  /** Which call. */
  call_id: string;
  /** The piece. */
  delta: string;
}

/** A tool is called. */
export interface ToolCalledEvent extends Envelope {
  type: "tool.called";
  /** Which call. */
  call_id: string;
  /** The tool. */
  name: string;
  /** What it is given: always an object. */
  arguments: unknown;
  /** The arguments as text, where they are no JSON object. */
  arguments_text?: string;
  /** Whether the call was cut off before its arguments were whole. */
  incomplete?: boolean;
  /** What the call is for, for people. */
  description?: string;
  /** The message that calls it. */
  message_id?: string;
}

/** The tool begins to work. */
export interface ToolStartedEvent extends Envelope {
  type: "tool.started";
  /** Which call. */
  call_id: string;
  /** The tool. */
  name?: string;
}

/** How far the tool is. */
export interface ToolProgressEvent extends Envelope {
  type: "tool.progress";
  /** Which call. */
  call_id: string;
  /** From 0 to 100. */
  progress?: number;
  /** What it is doing. */
  message?: string;
}

/** Something the tool printed. */
export interface ToolOutputEvent extends Envelope {
  type: "tool.output";
  /** Which call. */
  call_id: string;
  /** The tool. */
  name?: string;
  /** What it printed. */
  content: string;
}

/** The call is over. */
export interface ToolFinishedEvent extends Envelope {
  type: "tool.finished";
  /** Which call. */
  call_id: string;
  /** The tool. */
  name?: string;
  /** How it ended. */
  status: ToolStatus;
  /** What it gave back. */
  result?: unknown;
  /** What went wrong. */
  error?: ErrorInfo;
  /** How long it took. */
  duration_ms?: number;
  /** The message that carries the result. */
  message_id?: string;
}

/** A person is asked. */
export interface InteractionRequestedEvent extends Envelope {
  type: "interaction.requested";
  /** Which question. */
  interaction_id: string;
  /** A form or an approval. */
  kind: InteractionKind;
  /** The question's title. */
  title?: string;
  /** The question. */
  description?: string;
  /** The answer's JSON Schema. */
  schema?: unknown;
  /** Texts of the form. */
  ui?: unknown;
  /** The call it is about. */
  call_id?: string;
  /** The tool it is about. */
  name?: string;
  /** What the tool would be given. */
  arguments?: unknown;
  /** Why it is asked. */
  reason?: string;
  /** When it is too late to answer. */
  expires_at?: string;
}

/** A question is settled. */
export interface InteractionResolvedEvent extends Envelope {
  type: "interaction.resolved";
  /** Which question. */
  interaction_id: string;
  /** How. */
  decision: Decision;
  /** What the person filled in. */
  values?: unknown;
  /** Why. */
  reason?: string;
  /** Who. */
  by?: string;
}

/** The whole state of the thread. */
export interface StateSnapshotEvent extends Envelope {
  type: "state.snapshot";
  /** The state. */
  state: unknown;
}

/** The state as a step left it. */
export interface StateUpdatedEvent extends Envelope {
  type: "state.updated";
  /** The step's name. */
  step: string;
  /** The state. */
  state: unknown;
}

/** A change of the state. */
export interface StatePatchedEvent extends Envelope {
  type: "state.patched";
  /** The change, as a JSON Patch (RFC 6902). */
  patch: unknown;
}

/** All messages of the thread. */
export interface MessagesSnapshotEvent extends Envelope {
  type: "messages.snapshot";
  /** The messages. */
  messages: unknown;
}

/** A place that the agent can go back to. */
export interface CheckpointEvent extends Envelope {
  type: "checkpoint";
  /** Its id. */
  checkpoint_id?: unknown;
  /** When it was made. */
  timestamp?: unknown;
  /** After which step. */
  step?: unknown;
  /** The state. */
  state?: unknown;
  /** The source's thread id. */
  thread?: unknown;
  /** Its namespace. */
  checkpoint_ns?: unknown;
}

/** A thought tree grows. */
export interface TotExpandedEvent extends Envelope {
  type: "tot.expanded";
  /** The new thoughts. */
  candidates: unknown;
}

/** The thoughts of a tree are judged. */
export interface TotEvaluatedEvent extends Envelope {
  type: "tot.evaluated";
  /** Which was chosen, from 0. */
  chosen: unknown;
  /** The score of each. */
  scores: unknown;
}

/** A thought tree goes back. */
export interface TotBacktrackedEvent extends Envelope {
  type: "tot.backtracked";
  /** Why. */
  reason?: string;
  /** To which depth. */
  to_depth: unknown;
}

/** A thought graph is laid out. */
export interface GotPlannedEvent extends Envelope {
  type: "got.planned";
  /** How many nodes it has. */
  node_count?: unknown;
  /** How many edges it has. */
  edge_count?: unknown;
  /** Its nodes. */
  node_ids?: unknown;
}

/** A node of a thought graph begins. */
export interface GotNodeStartedEvent extends Envelope {
  type: "got.node_started";
  /** Which node. */
  node_id: string;
}

/** A node of a thought graph is done. */
export interface GotNodeCompletedEvent extends Envelope {
  type: "got.node_completed";
  /** Which node. */
  node_id: string;
  /** What it found. */
  result_summary?: string;
}

/** A node of a thought graph failed. */
export interface GotNodeFailedEvent extends Envelope {
  type: "got.node_failed";
  /** Which node. */
  node_id: string;
  /** Why. */
  error: string;
}

/** A thought graph grows. */
export interface GotExpandedEvent extends Envelope {
  type: "got.expanded";
  /** The node it grows from. */
  node_id: string;
  /** The new nodes. */
  nodes_added?: unknown;
  /** The new edges. */
  edges_added?: unknown;
}

/** A block of data: a table, a chart, an image. */
export interface DataEvent extends Envelope {
  type: "data";
  /** What it is. */
  data_type: string;
  /** The data. */
  data: unknown;
  /** What is known of it. */
  metadata?: unknown;
  /** The call it comes from. */
  call_id?: string;
}

/** An activity is shown. */
export interface ActivitySnapshotEvent extends Envelope {
  type: "activity.snapshot";
  /** Which message. */
  message_id: string;
  /** What kind of activity. */
  activity_type: string;
  /** What it shows. */
  content: unknown;
  /** Whether it replaces what was shown. */
  replace?: boolean;
}

/** A shown activity changes. */
export interface ActivityPatchedEvent extends Envelope {
  type: "activity.patched";
  /** Which message. */
  message_id: string;
  /** What kind of activity. */
  activity_type: string;
  /** The change, as a JSON Patch (RFC 6902). */
  patch: unknown;
}

/** A subagent begins. */
export interface SubagentStartedEvent extends Envelope {
  type: "subagent.started";
  /** Its name. */
  name?: string;
  /** The subagent it happened in. */
  subagent_run_id: string;
}

/** A subagent is done. */
export interface SubagentFinishedEvent extends Envelope {
  type: "subagent.finished";
  /** What it gave back. */
  result?: unknown;
  /** The subagent it happened in. */
  subagent_run_id: string;
}

/** A subagent failed. */
export interface SubagentFailedEvent extends Envelope {
  type: "subagent.failed";
  /** Why. */
  message: string;
  /** The source's code for it. */
  code?: string;
  /** The subagent it happened in. */
  subagent_run_id: string;
}

/** The tokens of one model call. */
export interface UsageEvent extends Envelope {
  type: "usage";
  /** Of the prompt. */
  prompt_tokens?: number;
  /** Of the completion. */
  completion_tokens?: number;
  /** In all. */
  total_tokens?: number;
}

/** Figures of any kind. */
export interface MetricsEvent extends Envelope {
  type: "metrics";
  /** The figures. */
  figures: unknown;
}

/** Something to know of that does not by itself end the run. */
export interface NoticeEvent extends Envelope {
  type: "notice";
  /** How loud. */
  level: Level;
  /** Whose: `system` or `business`. */
  domain?: string;
  /** The source's code for it. */
  code?: string;
  /** The kind of error. */
  kind?: string;
  /** What a person reads. */
  message: string;
  /** Whether trying again may help. */
  retryable?: boolean;
  /** Whether the run cannot go on. */
  fatal?: boolean;
  /** Anything else that is known. */
  details?: unknown;
}

/** Something of the agent's own. */
export interface CustomEvent extends Envelope {
  type: "custom";
  /** Its name. */
  name?: string;
  /** Its value. */
  value: unknown;
}

/** A frame of a type that its dialect does not define, as it came. */
export interface ForeignEvent extends Envelope {
  type: "foreign";
  /** The dialect it came in. */
  dialect: string;
  /** The frame. */
  frame: unknown;
  /** The name that SSE carried for it. */
  name?: string;
}

/** The figures of a whole run. */
export interface Summary {
  /** Tokens of all prompts. */
  prompt_tokens?: number;
  /** Tokens of all completions. */
  completion_tokens?: number;
  /** Tokens in all. */
  total_tokens?: number;
  /** How long it took. */
  duration_ms?: number;
  /** How many steps it had. */
  steps?: number;
  /** How many tools were called. */
  tool_calls?: number;
  /** How long the first text took. */
  response_latency_ms?: number;
}

/** What went wrong. */
export interface ErrorInfo {
  /** The source's code for it. */
  code?: string;
  /** The kind of error (`validation`, `timeout`, the class of an exception). */
  kind?: string;
  /** Whose error it is: `system` or `business`. */
  domain?: string;
  /** What a person reads. */
  message: string;
  /** Whether trying again may help. */
  retryable?: boolean;
  /** Anything else that is known. */
  details?: unknown;
}

/** How a tool call ended. */
export type ToolStatus = "success" | "failure" | "partial";

/** What a person is asked for. */
export type InteractionKind = "form" | "approval";

/** What became of a question. */
export type Decision = "submitted" | "approved" | "rejected" | "cancelled" | "expired";

/** How loud a notice is. */
export type Level = "debug" | "warning" | "error";

/** A run as the person who watches it sees it. */
export interface MessageState {
  /** The run's id, in a thread's list also `<run>#2` for its second part; of a person's message, its own. */
  messageId: string;
  /** `assistant`, or `user` for a person's message. */
  role: "assistant" | "user";
  /** All thinking, with a blank line between thoughts. */
  thinkingContent: string;
  /** All texts of the assistant, with a blank line between them, or the text of a person's message. */
  mainContent: string;
  /** The calls, in the order they were made. */
  toolCalls: ToolCall[];
  /** The blocks of data, in the order they came. */
  dataBlocks: DataBlock[];
  /** Whether more may come. */
  isStreaming: boolean;
  /** Whether the run failed or reported a fatal error, even if it completed afterwards. */
  hasError: boolean;
  /** Message of that error. */
  errorMessage?: string;
  /** Errors and warnings that the run went on after, in the order they came. */
  notices: NoticeState[];
  /** Ids and times. */
  metadata: Metadata;
  /** The steps, in the order they began. */
  steps: StepState[];
  /** The questions, in the order they were asked. */
  interactions: InteractionState[];
  /** Tokens, summed. */
  usage?: UsageState;
  /** How far the run is. */
  status: RunStatus;
}

/** A call. */
export interface ToolCall {
  /** Its id. */
  toolId: string;
  /** The tool. */
  toolName: string;
  /** What the call is for. */
  description?: string;
  /** What it was given. */
  arguments: unknown;
  /** What it was given, where that is no JSON object. */
  argumentsText?: string;
  /** `calling`, `completed` or `failed`. */
  status: "calling" | "completed" | "failed";
  /** How far it is, from 0 to 100. */
  progress?: number;
  /** Message of its latest progress. */
  progressMessage?: string;
  /** What it printed. */
  output?: string;
  /** What it gave back. */
  result?: unknown;
  /** What went wrong. */
  error?: ErrorState;
  /** How long it took. */
  durationMs?: number;
}

/** What went wrong. */
export interface ErrorState {
  /** What a person reads. */
  message: string;
  /** The source's code for it. */
  code?: string;
}

/** A block of data. */
export interface DataBlock {
  /** What it is. */
  dataType: string;
  /** The data. */
  data: unknown;
  /** What is known of it. */
  metadata?: unknown;
  /** The call it comes from. */
  toolId?: string;
}

/** An error or a warning that the run went on after. */
export interface NoticeState {
  /** `error` or `warning`. */
  level: Level;
  /** What a person reads. */
  message: string;
  /** The source's code for it. */
  code?: string;
}

/** Ids and times. */
export interface Metadata {
  /** The run's id. */
  requestId: string;
  /** When the run began, in milliseconds since the epoch. */
  startTime: number;
  /** When it ended. */
  endTime?: number;
}

/** A step. */
export interface StepState {
  /** Its id. */
  stepId: string;
  /** Its name. */
  name: string;
  /** `running`, `completed` or `failed`. */
  status: "running" | "completed" | "failed";
  /** Why it failed. */
  error?: string;
}

/** A question. */
export interface InteractionState {
  /** Its id. */
  interactionId: string;
  /** A form or an approval. */
  kind: InteractionKind;
  /** `open`, or what became of it. */
  status: "open" | "submitted" | "approved" | "rejected" | "cancelled" | "expired";
  /** Its title. */
  title?: string;
  /** The question. */
  description?: string;
  /** The answer's JSON Schema. */
  schema?: unknown;
  /** Texts of the form. */
  ui?: unknown;
  /** The call it is about. */
  toolId?: string;
  /** What the person filled in. */
  values?: unknown;
  /** Why it was settled so. */
  reason?: string;
}

/** Tokens, summed. */
export interface UsageState {
  /** Of all prompts. */
  promptTokens: number;
  /** Of all completions. */
  completionTokens: number;
  /** In all. */
  totalTokens: number;
}

/** How far a run is. */
export type RunStatus = "pending" | "running" | "suspended" | "completed" | "failed" | "cancelled";

/** One thing that frames of a run break of their dialect's document. */
export interface Warning {
  /** The first record that has it. */
  seq: number;
  /** How often it was found. */
  times: number;
  dialect: string;
  /** The rule that is broken. */
  code: string;
  /** The field at fault, with dots between the levels. */
  field?: string;
  /** The field at fault as a JSON pointer. */
  pointer?: string;
  /** The section of the dialect's document. */
  section?: string;
  /** What is wrong, and what is expected. */
  message: string;
  /** What probably helps. */
  hint?: string;
}

/** Something that a server leans on. */
export interface Dependency {
  kind: "sqlite" | "postgres" | "redis" | "store";
  state: "up" | "away";
  /** Since when it is away, where that is known. */
  since?: string;
  /** Why it is away. */
  reason?: string;
}

/** The message that a webhook gets. */
export interface WebhookMessage {
  type: "interaction.requested" | "run.completed" | "run.failed" | "run.cancelled";
  /** When the event was written. */
  at: string;
  thread_id: string;
  run_id: string;
  /** Missing where the run names none. */
  agent?: string;
  /** The record in the thread: what happened first has the smaller one. */
  seq: number;
  /** Of a question, where it is answered; of an end, the run. A path, unless the webhook has a `base_url`. */
  url: string;
  /** The event, as the `runwire` dialect has it. */
  data: Record<string, unknown>;
}

/** Counts of what was written of a body; the response. */
export interface Written {
  /** Frames that are written now. */
  accepted: number;
  /** Frames that were written before. */
  duplicates: number;
  /** The last `seq` of the run, or of the thread that was written to last. */
  last_seq: number;
  /** The threads that were written to, at `/v1/events` alone; of more than 1024, those that were written to last. */
  threads?: string[];
}

/** A page of runs, newest first. */
export interface RunList {
  runs: Run[];
  /** Where to go on, as `before`. */
  next: string | null;
}

/** A run, as responses show it. */
export interface Run {
  run_id: string;
  thread_id: string;
  agent: string | null;
  /** What the person asked, the beginning of a very long text. */
  message: string | null;
  status: RunStatus;
  created_at: string;
  started_at: string | null;
  ended_at: string | null;
  /** The last `seq`; `0` if nothing was written. */
  cursor: string;
  counts: {
    records: number;
    events: number;
    messages: number;
    tool_calls: number;
    steps: number;
  };
  usage: {
    prompt_tokens: number;
    completion_tokens: number;
    total_tokens: number;
  } | null;
  interactions: ({
    interaction_id: string;
    kind: "form" | "approval";
    status: string;
    title: string | null;
    expires_at: string | null;
  })[];
  error: {
    code?: string;
    message: string;
    /** What else is known, such as `exit_code` and `stderr` of a program. Left out in lists, and where it is longer than 32 KiB. */
    details?: unknown;
  } | null;
  warnings?: Warnings;
  cancel_requested: boolean;
  /** Only in the answer to a new run: its `agent` is the name of none, and close to that of one. */
  hint?: string;
}

/** What the frames of a run break of their dialect's document, where they were written all the same; left out where there is nothing. */
export interface Warnings {
  /** How many there are in all. */
  count: number;
  /** The first ones, each different one once; empty in lists. */
  first: Warning[];
}

/** The body of a new run. */
export interface NewRun {
  thread_id?: string | null | undefined;
  run_id?: string | null | undefined;
  agent?: string | null | undefined;
  message?: string | null | undefined;
  /** The id of the message, where the caller has given it one. It must be new in the thread; without it, one is made. */
  message_id?: string | null | undefined;
  /** Any JSON, at most 1 MiB. */
  input?: unknown;
}

/** The server's producer. */
export interface Producer {
  epoch: number;
  /** The index of the frame to send next. */
  next: number;
  dialect?: string;
}

/** The response to a heartbeat. */
export interface Beat {
  status: RunStatus;
  cancel_requested: boolean;
}

/** A question to a person: a form or an approval. */
export interface Interaction {
  interaction_id: string;
  run_id: string;
  thread_id: string;
  agent: string | null;
  kind: "form" | "approval";
  /** `open`, or the decision. */
  status: "open" | Decision;
  title?: string;
  description?: string;
  /** The JSON Schema that `values` must fit. */
  schema?: unknown;
  /** Texts of the form. */
  ui?: unknown;
  call_id?: string;
  /** The tool that is to be called. */
  name?: string;
  /** What the tool would be given. */
  arguments?: unknown;
  reason?: string;
  asked_at: string;
  expires_at: string | null;
  answer: Answer | null;
  /** How to answer, while it is open. */
  answer_with?: {
    method: string;
    path: string;
    decisions: Decision[];
  };
}

/** The answer to a question. */
export interface Answer {
  decision: Decision;
  /** What was filled in. */
  values?: unknown;
  reason?: string;
  by?: string;
  at: string;
}

/** The body of an answer. */
export interface NewAnswer {
  decision: "submitted" | "approved" | "rejected" | "cancelled";
  /** What is filled in; it must fit the question's schema. */
  values?: unknown;
  reason?: string | null | undefined;
}

/** A page of the inbox, newest first. */
export interface InteractionList {
  interactions: Interaction[];
  /** Where to go on, as `before`. */
  next: string | null;
}

/** A page of threads, newest first. */
export interface ThreadList {
  threads: Thread[];
  /** Where to go on, as `before`. */
  next: string | null;
}

/** A thread, as responses show it. */
export interface Thread {
  thread_id: string;
  parallel: boolean;
  created_at: string;
  cursor: string;
  oldest: number;
  open_runs: string[];
  runs: number;
  /** What the person asked first, the beginning of a very long text. */
  title: string | null;
  /** The run that began last. */
  latest: LatestRun | null;
}

/** The thread's latest run. */
export interface LatestRun {
  run_id: string;
  agent: string | null;
  status: RunStatus;
  /** When it began, or ended. */
  at: string;
}

/** The body of a new thread. */
export interface NewThread {
  thread_id?: string | null | undefined;
  /** Whether several runs may be open at once. */
  parallel?: boolean | undefined;
}

/** A page of a thread's messages, in the order their runs began: what people said, and each run as one message, or as several where people spoke in between. */
export interface MessageList {
  messages: MessageState[];
  /** The run to go on from, as `before`, where older ones are left. */
  next: string | null;
}

/** The agents of the server. */
export interface AgentList {
  agents: Agent[];
}

/** An agent that the server starts. */
export interface Agent {
  name: string;
  kind: "http" | "exec" | "demo";
  dialect: string;
  /** Whether it is the agent of requests to façades that name none. */
  default: boolean;
  title: Words | null;
  description: Words | null;
  /** What it can be asked, to try it. */
  examples: Words[];
}

/** The same words in two languages. */
export interface Words {
  en: string;
  zh: string;
}

/** The webhooks of the server. */
export interface WebhookList {
  webhooks: Webhook[];
}

/** A webhook and how its deliveries go. */
export interface Webhook {
  name: string;
  /** Scheme, host and port. Path and query are left out: they may be secret. */
  target: string;
  events: ("interaction.requested" | "run.completed" | "run.failed" | "run.cancelled")[];
  /** `gone`: it answered 410, and is sent nothing more until the server starts anew. */
  status: "active" | "gone";
  /** Messages that wait for their delivery. */
  waiting: number;
  /** Those of them that were tried in vain. */
  retrying: number;
  /** Messages that arrived since the server started. */
  delivered: number;
  /** Attempts in vain since the server started. */
  failed_attempts: number;
  /** Messages that were given up since the server started. */
  given_up: number;
  last_success_at: string | null;
  last_failure: {
    at: string;
    reason: string;
  } | null;
}

/** Whether a server can do its work, and what it leans on for it. */
export interface Readiness {
  ready: boolean;
  store: Dependency;
  tail?: Dependency;
}

/** An event of this version's vocabulary. */
export type KnownEvent =
  | RunStartedEvent
  | RunCompletedEvent
  | RunFailedEvent
  | RunCancelledEvent
  | RunSuspendedEvent
  | RunResumedEvent
  | RunCancelRequestedEvent
  | RunStatusEvent
  | StepStartedEvent
  | StepFinishedEvent
  | TextStartedEvent
  | TextDeltaEvent
  | TextFinishedEvent
  | ThinkingStartedEvent
  | ThinkingDeltaEvent
  | ThinkingFinishedEvent
  | ToolArgsStartedEvent
  | ToolArgsDeltaEvent
  | ToolCalledEvent
  | ToolStartedEvent
  | ToolProgressEvent
  | ToolOutputEvent
  | ToolFinishedEvent
  | InteractionRequestedEvent
  | InteractionResolvedEvent
  | StateSnapshotEvent
  | StateUpdatedEvent
  | StatePatchedEvent
  | MessagesSnapshotEvent
  | CheckpointEvent
  | TotExpandedEvent
  | TotEvaluatedEvent
  | TotBacktrackedEvent
  | GotPlannedEvent
  | GotNodeStartedEvent
  | GotNodeCompletedEvent
  | GotNodeFailedEvent
  | GotExpandedEvent
  | DataEvent
  | ActivitySnapshotEvent
  | ActivityPatchedEvent
  | SubagentStartedEvent
  | SubagentFinishedEvent
  | SubagentFailedEvent
  | UsageEvent
  | MetricsEvent
  | NoticeEvent
  | CustomEvent
  | ForeignEvent;

/** Every type of the vocabulary. */
export const EVENT_TYPES: readonly KnownEvent["type"][] = [
  "run.started",
  "run.completed",
  "run.failed",
  "run.cancelled",
  "run.suspended",
  "run.resumed",
  "run.cancel_requested",
  "run.status",
  "step.started",
  "step.finished",
  "text.started",
  "text.delta",
  "text.finished",
  "thinking.started",
  "thinking.delta",
  "thinking.finished",
  "tool.args_started",
  "tool.args_delta",
  "tool.called",
  "tool.started",
  "tool.progress",
  "tool.output",
  "tool.finished",
  "interaction.requested",
  "interaction.resolved",
  "state.snapshot",
  "state.updated",
  "state.patched",
  "messages.snapshot",
  "checkpoint",
  "tot.expanded",
  "tot.evaluated",
  "tot.backtracked",
  "got.planned",
  "got.node_started",
  "got.node_completed",
  "got.node_failed",
  "got.expanded",
  "data",
  "activity.snapshot",
  "activity.patched",
  "subagent.started",
  "subagent.finished",
  "subagent.failed",
  "usage",
  "metrics",
  "notice",
  "custom",
  "foreign",
];
