import type { RunwireEvent } from "../events.js";
import type {
  DataBlock,
  ErrorInfo,
  InteractionRequestedEvent,
  InteractionResolvedEvent,
  InteractionState,
  KnownEvent,
  MessageState,
  NoticeEvent,
  NoticeState,
  RunStatus,
  StepState,
  Summary,
  ToolCall,
  ToolCalledEvent,
  ToolFinishedEvent,
} from "../generated.js";
import { errorOf } from "./error.js";
import { SnapshotList } from "./snapshot-list.js";
import { JoinedTexts } from "./joined-texts.js";
import { UsageFold } from "./usage.js";

/** An event without the ids of its envelope, which the fold does not need. */
export type FoldableEvent = Omit<RunwireEvent, "seq" | "thread_id" | "run_id">;

/**
 * Folds the events of one run into a message state: the same as `GET /v1/runs/{run}/message` returns.
 */
export class MessageFold {
  readonly #thinking = new JoinedTexts();
  readonly #texts = new JoinedTexts();
  readonly #calls = new SnapshotList<ToolCall>();
  readonly #data = new SnapshotList<DataBlock>();
  readonly #notices = new SnapshotList<NoticeState>();
  readonly #steps = new SnapshotList<StepState>();
  readonly #interactions = new SnapshotList<InteractionState>();
  readonly #usage = new UsageFold();
  #runId: string;
  #status: RunStatus = "pending";
  #startTime = 0;
  #endTime: number | undefined;
  #error: string | undefined;
  #cached: MessageState | undefined;

  /** Starts with an empty run. */
  constructor(runId = "") {
    this.#runId = runId;
  }

  /** The run's id; empty until it is set. */
  get runId(): string {
    return this.#runId;
  }

  set runId(id: string) {
    this.#runId = id;
    this.#cached = undefined;
  }

  /** Applies the next event; `at` is its time in milliseconds since the epoch. */
  apply(event: FoldableEvent, at: number): void {
    if (this.#status === "pending") {
      this.#status = "running";
      this.#startTime = at;
    }
    this.#cached = undefined;
    this.#applyBody(event as KnownEvent, at);
  }

  /** Returns the message: the same object until something changes. */
  snapshot(): MessageState {
    this.#cached ??= this.#buildSnapshot();
    return this.#cached;
  }

  #buildSnapshot(): MessageState {
    const usage = this.#usage.snapshot();
    const isClosed = this.#endTime !== undefined;
    return {
      messageId: this.#runId,
      role: "assistant",
      thinkingContent: this.#thinking.joined,
      mainContent: this.#texts.joined,
      toolCalls: this.#calls.snapshot() as ToolCall[],
      dataBlocks: this.#data.snapshot() as DataBlock[],
      isStreaming: !isClosed,
      hasError: this.#error !== undefined,
      ...(this.#error !== undefined && { errorMessage: this.#error }),
      notices: this.#notices.snapshot() as NoticeState[],
      metadata: { requestId: this.#runId, startTime: this.#startTime, ...(this.#endTime !== undefined && { endTime: this.#endTime }) },
      steps: this.#steps.snapshot() as StepState[],
      interactions: this.#interactions.snapshot() as InteractionState[],
      ...(usage !== undefined && {
        usage: { promptTokens: usage.promptTokens, completionTokens: usage.completionTokens, totalTokens: usage.totalTokens },
      }),
      status: this.#status,
    };
  }

  #applyBody(event: KnownEvent, at: number): void {
    switch (event.type) {
      case "text.started":
        return this.#texts.start(event.message_id, event.role === undefined || event.role === "assistant", event.subagent_run_id !== undefined);
      case "text.delta":
        return this.#texts.add(event.message_id, event.content);
      case "text.finished":
        this.#texts.finish(event.message_id, event.subagent_run_id !== undefined);
        if (event.content !== undefined) this.#texts.replace(event.message_id, event.content);
        return;
      case "thinking.started":
        return this.#thinking.start(event.message_id, true, true);
      case "thinking.delta":
        return this.#thinking.add(event.message_id, event.content);
      case "thinking.finished":
        if (event.content !== undefined) this.#thinking.replace(event.message_id, event.content);
        return;
      case "tool.called":
        return this.#calls.push(toToolCall(event));
      case "tool.progress":
        return this.#editCall(event.call_id, ({ progress: _, progressMessage: __, ...call }) => ({
          ...call,
          ...(event.progress !== undefined && { progress: event.progress }),
          // Dialects whose progress must have a message send an empty one.
          ...(event.message !== undefined && event.message !== "" && { progressMessage: event.message }),
        }));
      case "tool.output":
        return this.#editCall(event.call_id, (call) => ({ ...call, output: (call.output ?? "") + event.content }));
      case "tool.finished":
        return this.#editCall(event.call_id, (call) => finishCall(call, event));
      case "data":
        return this.#data.push({
          dataType: event.data_type,
          data: event.data,
          ...(event.metadata !== undefined && { metadata: event.metadata }),
          ...(event.call_id !== undefined && { toolId: event.call_id }),
        });
      case "step.started":
        return this.#steps.push({ stepId: event.step_id ?? "", name: event.name, status: "running" });
      case "step.finished":
        return this.#finishStep(event.step_id ?? "", event.error);
      case "interaction.requested":
        return this.#interactions.push(toInteraction(event));
      case "interaction.resolved":
        return this.#resolveInteraction(event);
      case "usage":
        return this.#usage.add(event, at, undefined, undefined);
      case "notice":
        return this.#addNotice(event);
      case "run.suspended":
        this.#status = "suspended";
        return;
      case "run.resumed":
        this.#status = "running";
        return;
      case "run.completed":
        return this.#end("completed", event.summary, at);
      case "run.failed":
        this.#error = errorOf(event.error).message;
        return this.#end("failed", event.summary, at);
      case "run.cancelled":
        return this.#end("cancelled", event.summary, at);
    }
  }

  #editCall(id: string, change: (call: ToolCall) => ToolCall): void {
    const index = this.#calls.findLastIndex((call) => call.toolId === id);
    const call = index === -1 ? undefined : this.#calls.at(index);
    if (call !== undefined) this.#calls.set(index, change(call));
  }

  #finishStep(id: string, error: ErrorInfo | undefined): void {
    const index = this.#steps.findLastIndex((step) => step.stepId === id && step.status === "running");
    const step = index === -1 ? undefined : this.#steps.at(index);
    if (step === undefined) return;
    this.#steps.set(index, error === undefined ? { ...step, status: "completed" } : { ...step, status: "failed", error: errorOf(error).message });
  }

  #resolveInteraction(event: InteractionResolvedEvent): void {
    const index = this.#interactions.findLastIndex((interaction) => interaction.interactionId === event.interaction_id);
    const interaction = index === -1 ? undefined : this.#interactions.at(index);
    if (interaction === undefined) return;
    const { values: _, reason: __, ...rest } = interaction;
    this.#interactions.set(index, {
      ...rest,
      status: event.decision,
      ...(event.values !== undefined && { values: event.values }),
      ...(event.reason !== undefined && { reason: event.reason }),
    });
  }

  /** Sets a fatal error as the message's error; adds others as notices. */
  #addNotice({ level, message, code, fatal }: NoticeEvent): void {
    if (fatal === true) this.#error = message;
    else if (level !== "debug") this.#notices.push({ level, message, ...(code !== undefined && { code }) });
  }

  #end(status: RunStatus, summary: Summary | undefined, at: number): void {
    this.#status = status;
    this.#endTime = at;
    this.#usage.end(summary);
  }
}

function toToolCall(event: ToolCalledEvent): ToolCall {
  return {
    toolId: event.call_id,
    toolName: event.name,
    ...(event.description !== undefined && { description: event.description }),
    arguments: event.arguments,
    ...(event.arguments_text !== undefined && { argumentsText: event.arguments_text }),
    status: "calling",
  };
}

function finishCall(call: ToolCall, event: ToolFinishedEvent): ToolCall {
  const { result: _, error: __, durationMs: ___, ...rest } = call;
  const error = event.error === undefined ? undefined : errorOf(event.error);
  return {
    ...rest,
    status: event.status === "failure" ? "failed" : "completed",
    ...(event.result !== undefined && { result: event.result }),
    ...(error !== undefined && { error: { message: error.message, ...(error.code !== undefined && { code: error.code }) } }),
    ...(event.duration_ms !== undefined && { durationMs: event.duration_ms }),
  };
}

function toInteraction(event: InteractionRequestedEvent): InteractionState {
  return {
    interactionId: event.interaction_id,
    kind: event.kind,
    status: "open",
    ...(event.title !== undefined && { title: event.title }),
    ...(event.description !== undefined && { description: event.description }),
    ...(event.schema !== undefined && { schema: event.schema }),
    ...(event.ui !== undefined && { ui: event.ui }),
    ...(event.call_id !== undefined && { toolId: event.call_id }),
  };
}
