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
import { Kept } from "./kept.js";
import { Texts } from "./texts.js";
import { UsageFold } from "./usage.js";

/** What the fold reads of an event: an envelope is not needed. */
export type Folded = Omit<RunwireEvent, "seq" | "thread_id" | "run_id">;

/**
 * Gathers the events of one run into a message state: the same state as `GET /v1/runs/{run}/message` gives.
 */
export class MessageFold {
  readonly #thinking = new Texts();
  readonly #texts = new Texts();
  readonly #calls = new Kept<ToolCall>();
  readonly #data = new Kept<DataBlock>();
  readonly #notices = new Kept<NoticeState>();
  readonly #steps = new Kept<StepState>();
  readonly #interactions = new Kept<InteractionState>();
  readonly #usage = new UsageFold();
  #runId: string;
  #status: RunStatus = "pending";
  #startTime = 0;
  #endTime: number | undefined;
  #error: string | undefined;
  #shown: MessageState | undefined;

  /** Begins with a run that nothing was written to. */
  constructor(runId = "") {
    this.#runId = runId;
  }

  /** The run's id; empty until an event names it. */
  get runId(): string {
    return this.#runId;
  }

  set runId(id: string) {
    this.#runId = id;
    this.#shown = undefined;
  }

  /** Takes in the next event, which happened at a time in milliseconds since the epoch. */
  apply(event: Folded, at: number): void {
    if (this.#status === "pending") {
      this.#status = "running";
      this.#startTime = at;
    }
    this.#shown = undefined;
    this.#take(event as KnownEvent, at);
  }

  /** Gives the message as it stands: the same object as before if nothing has changed. */
  snapshot(): MessageState {
    this.#shown ??= this.#gather();
    return this.#shown;
  }

  #gather(): MessageState {
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

  #take(event: KnownEvent, at: number): void {
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
        return this.#calls.push(callOf(event));
      case "tool.progress":
        return this.#editCall(event.call_id, ({ progress: _, progressMessage: __, ...call }) => ({
          ...call,
          ...(event.progress !== undefined && { progress: event.progress }),
          // Dialects whose progress always has a message leave it empty.
          ...(event.message !== undefined && event.message !== "" && { progressMessage: event.message }),
        }));
      case "tool.output":
        return this.#editCall(event.call_id, (call) => ({ ...call, output: (call.output ?? "") + event.content }));
      case "tool.finished":
        return this.#editCall(event.call_id, (call) => finished(call, event));
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
        return this.#stepFinished(event.step_id ?? "", event.error);
      case "interaction.requested":
        return this.#interactions.push(questionOf(event));
      case "interaction.resolved":
        return this.#resolved(event);
      case "usage":
        return this.#usage.add(event, at, undefined, undefined);
      case "notice":
        return this.#noticed(event);
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
    const place = this.#calls.findLastIndex((call) => call.toolId === id);
    const call = place === -1 ? undefined : this.#calls.at(place);
    if (call !== undefined) this.#calls.put(place, change(call));
  }

  #stepFinished(id: string, error: ErrorInfo | undefined): void {
    const place = this.#steps.findLastIndex((step) => step.stepId === id && step.status === "running");
    const step = place === -1 ? undefined : this.#steps.at(place);
    if (step === undefined) return;
    this.#steps.put(place, error === undefined ? { ...step, status: "completed" } : { ...step, status: "failed", error: errorOf(error).message });
  }

  #resolved(event: InteractionResolvedEvent): void {
    const place = this.#interactions.findLastIndex((asked) => asked.interactionId === event.interaction_id);
    const asked = place === -1 ? undefined : this.#interactions.at(place);
    if (asked === undefined) return;
    const { values: _, reason: __, ...question } = asked;
    this.#interactions.put(place, {
      ...question,
      status: event.decision,
      ...(event.values !== undefined && { values: event.values }),
      ...(event.reason !== undefined && { reason: event.reason }),
    });
  }

  /** Shows a fatal error at once, and keeps others as notices. */
  #noticed({ level, message, code, fatal }: NoticeEvent): void {
    if (fatal === true) this.#error = message;
    else if (level !== "debug") this.#notices.push({ level, message, ...(code !== undefined && { code }) });
  }

  #end(status: RunStatus, summary: Summary | undefined, at: number): void {
    this.#status = status;
    this.#endTime = at;
    this.#usage.end(summary);
  }
}

function callOf(event: ToolCalledEvent): ToolCall {
  return {
    toolId: event.call_id,
    toolName: event.name,
    ...(event.description !== undefined && { description: event.description }),
    arguments: event.arguments,
    ...(event.arguments_text !== undefined && { argumentsText: event.arguments_text }),
    status: "calling",
  };
}

function finished(call: ToolCall, event: ToolFinishedEvent): ToolCall {
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

function questionOf(event: InteractionRequestedEvent): InteractionState {
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
