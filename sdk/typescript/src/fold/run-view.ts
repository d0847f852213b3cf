import { isClosed, type RunwireEvent } from "../events.js";
import type { ErrorInfo, InteractionRequestedEvent, KnownEvent, RunStatus, Summary, ToolCalledEvent, ToolFinishedEvent } from "../generated.js";
import { errorOf } from "./error.js";
import { SnapshotList } from "./snapshot-list.js";
import { OpenOperations, type CurrentOperation } from "./current-operation.js";
import type { Part, ToolPart } from "./part-types.js";
import { applyPatch } from "./patch.js";
import { type BaseFactory, PartList } from "./part-list.js";
import { GotFold, type GotGraph, TotFold, type TotTree } from "./thoughts.js";
import { type RunViewUsage, UsageFold } from "./usage.js";

/** A step of a run. */
export interface RunStep {
  stepId: string;
  name: string;
  status: "running" | "completed" | "failed";
  /** In milliseconds since the epoch. */
  startedAt: number;
  endedAt?: number;
  error?: string;
}

/** The state after an event that changed it. */
export interface StateChange {
  seq: number;
  /** In milliseconds since the epoch. */
  at: number;
  cause: "snapshot" | "updated" | "patched" | "checkpoint";
  /** Name of the step that changed it. */
  step?: string;
  state: unknown;
}

/** Counts of a run. */
export interface RunViewCounts {
  events: number;
  texts: number;
  thoughts: number;
  toolCalls: number;
  steps: number;
  dataBlocks: number;
  interactions: number;
}

/** A run folded for display. Parts that have not changed since the last snapshot are the same objects. */
export interface RunViewSnapshot {
  runId: string;
  threadId?: string;
  agent?: string;
  status: RunStatus;
  /** The parts of the conversation, in order. */
  parts: readonly Part[];
  /** The operation that the run is currently executing. */
  operation: CurrentOperation;
  steps: readonly RunStep[];
  usage?: RunViewUsage;
  /** Current state of the thread. */
  state?: unknown;
  /** All changes of the state, oldest first. */
  states: readonly StateChange[];
  thoughts: { tot?: TotTree; got?: GotGraph };
  /** In milliseconds since the epoch. */
  startedAt?: number;
  endedAt?: number;
  /** The error that the run failed with. */
  error?: ErrorInfo;
  /** Structured result of the run. */
  result?: unknown;
  /** Totals of the run that the agent reported. */
  summary?: Summary;
  /** The cancellation request, and the reason of the cancellation. */
  cancel?: { requestedAt?: number; by?: string; reason?: string };
  /** The last metrics that the agent reported. */
  metrics?: unknown;
  counts: RunViewCounts;
}

/** Folds the events of one run for display; each event has to be applied once, in order. */
export class RunView {
  readonly #runId: string;
  readonly #parts = new PartList();
  readonly #operations = new OpenOperations();
  readonly #usage = new UsageFold();
  readonly #tot = new TotFold();
  readonly #got = new GotFold();
  readonly #steps = new SnapshotList<RunStep>();
  readonly #states = new SnapshotList<StateChange>();
  readonly #counts: RunViewCounts = { events: 0, texts: 0, thoughts: 0, toolCalls: 0, steps: 0, dataBlocks: 0, interactions: 0 };
  /** Fields that are copied into a snapshot. */
  #fields: Pick<RunViewSnapshot, "threadId" | "agent" | "startedAt" | "endedAt" | "error" | "result" | "summary" | "cancel" | "metrics"> = {};
  #thoughts: RunViewSnapshot["thoughts"] = {};
  #status: RunStatus = "pending";
  #since = 0;
  #hasOutput = false;
  #snapshot: RunViewSnapshot | undefined;

  /** Starts with an empty run. */
  constructor(runId: string) {
    this.#runId = runId;
  }

  /** Applies the next event; ignores events of other runs. */
  apply(event: RunwireEvent): void {
    if (event.run_id !== this.#runId) return;
    const at = Date.parse(event.at);
    this.#counts.events++;
    this.#snapshot = undefined;
    if (this.#status === "pending") {
      this.#status = "running";
      this.#since = at;
      this.#fields.startedAt = at;
      this.#fields.threadId = event.thread_id;
    }
    this.#applyBody(event, at);
  }

  /** Returns the run: the same object until something changes. */
  snapshot(): RunViewSnapshot {
    this.#snapshot ??= this.#buildSnapshot();
    return this.#snapshot;
  }

  #buildSnapshot(): RunViewSnapshot {
    const usage = this.#usage.snapshot();
    const last = this.#states.at(-1);
    return {
      runId: this.#runId,
      ...this.#fields,
      status: this.#status,
      parts: this.#parts.snapshot(),
      operation: this.#currentOperation(),
      steps: this.#steps.snapshot(),
      states: this.#states.snapshot(),
      ...(last !== undefined && { state: last.state }),
      ...(usage !== undefined && { usage }),
      thoughts: this.#thoughtsSnapshot(),
      counts: { ...this.#counts },
    };
  }

  #thoughtsSnapshot(): RunViewSnapshot["thoughts"] {
    const [tot, got] = [this.#tot.snapshot(), this.#got.snapshot()];
    if (tot !== this.#thoughts.tot || got !== this.#thoughts.got) {
      this.#thoughts = { ...(tot !== undefined && { tot }), ...(got !== undefined && { got }) };
    }
    return this.#thoughts;
  }

  #currentOperation(): CurrentOperation {
    if (this.#status === "suspended") {
      const interaction = this.#parts.findLast((part) => part.kind === "interaction" && part.status === "open");
      const name = interaction?.kind === "interaction" ? (interaction.title ?? interaction.name) : undefined;
      return { kind: "waiting", since: this.#since, ...(name !== undefined && { name }) };
    }
    const hasEnded = isClosed(this.#status);
    const newest = hasEnded ? undefined : this.#operations.newest();
    return newest ?? { kind: hasEnded || this.#hasOutput ? "idle" : "starting", since: this.#since };
  }

  #applyBody(event: KnownEvent, at: number): void {
    const base = this.#parts.baseFor(event, at);
    switch (event.type) {
      case "run.started":
        if (event.agent !== undefined) this.#fields.agent = event.agent;
        if (event.message !== undefined) this.#parts.add({ kind: "user", ...base("user"), endedAt: at, text: event.message });
        return;
      case "run.completed":
        if (event.reply !== undefined && event.reply !== "" && this.#counts.texts === 0) {
          this.#parts.add({ kind: "text", ...base("reply"), endedAt: at, messageId: "", text: event.reply });
        }
        if (event.result !== undefined) this.#fields.result = event.result;
        return this.#end("completed", event.summary, at);
      case "run.failed":
        this.#fields.error = errorOf(event.error);
        this.#parts.fail(this.#fields.error, { ...base("error"), endedAt: at });
        return this.#end("failed", event.summary, at);
      case "run.cancelled":
        // The reason of the request takes precedence over the agent's.
        this.#fields.cancel = { ...(event.reason !== undefined && { reason: event.reason }), ...this.#fields.cancel };
        return this.#end("cancelled", event.summary, at);
      case "run.cancel_requested":
        this.#fields.cancel = {
          requestedAt: at,
          ...(event.by !== undefined && { by: event.by }),
          ...(event.reason !== undefined && { reason: event.reason }),
        };
        return;
      case "run.suspended":
        this.#status = "suspended";
        this.#since = at;
        return;
      case "run.resumed":
        this.#status = "running";
        this.#since = at;
        return;
      case "run.status":
        return;
      case "step.started":
        this.#hasOutput = true;
        this.#counts.steps++;
        this.#steps.push({ stepId: event.step_id ?? "", name: event.name, status: "running", startedAt: at });
        return this.#operations.begin("step", event.step_id ?? "", event.name, at);
      case "step.finished":
        return this.#finishStep(event.step_id ?? "", event.error, at);
      case "text.started":
      case "text.delta":
      case "text.finished":
      case "thinking.started":
      case "thinking.delta":
      case "thinking.finished":
        return this.#applyText(event, at);
      case "tool.args_started":
        this.#ensureCall(event.call_id, event.name, at, base);
        return;
      case "tool.args_delta":
        return this.#parts.editCall(event.call_id, (call) => ({ argumentsText: (call.argumentsText ?? "") + event.delta }));
      case "tool.called":
        return this.#callTool(event, at, base);
      case "tool.started":
        this.#ensureCall(event.call_id, event.name, at, base);
        return this.#parts.editCall(event.call_id, () => ({ status: "running" }));
      case "tool.progress":
        return this.#parts.editCall(event.call_id, () => ({
          status: "running",
          ...(event.progress !== undefined && { progress: event.progress }),
          ...(event.message !== undefined && { progressMessage: event.message }),
        }));
      case "tool.output":
        return this.#parts.editCall(event.call_id, (call) => ({ output: (call.output ?? "") + event.content }));
      case "tool.finished":
        return this.#finishCall(event, at, base);
      case "interaction.requested":
        return this.#requestInteraction(event, base);
      case "interaction.resolved": {
        const { decision, values, reason, by } = event;
        const answer = { decision, ...(values !== undefined && { values }), ...(reason !== undefined && { reason }), ...(by !== undefined && { by }) };
        return this.#parts.edit("interaction", event.interaction_id, () => ({ status: decision, endedAt: at, answer }));
      }
      case "state.snapshot":
        return this.#addState(event.seq, at, "snapshot", event.state);
      case "state.updated":
        return this.#addState(event.seq, at, "updated", event.state, event.step);
      case "state.patched":
        return this.#addState(event.seq, at, "patched", applyPatch(this.#states.at(-1)?.state ?? {}, event.patch));
      case "tot.expanded":
        return this.#tot.expanded(event, at);
      case "tot.evaluated":
        return this.#tot.evaluated(event);
      case "tot.backtracked":
        return this.#tot.backtracked(event, at);
      case "got.planned":
        return this.#got.planned(event);
      case "got.node_started":
        this.#got.started(event, at);
        return this.#operations.begin("node", `node ${event.node_id}`, event.node_id, at);
      case "got.node_completed":
        this.#got.completed(event, at);
        return this.#operations.end("node", `node ${event.node_id}`);
      case "got.node_failed":
        this.#got.failed(event, at);
        return this.#operations.end("node", `node ${event.node_id}`);
      case "got.expanded":
        return this.#got.expanded(event);
      case "usage":
        return this.#usage.add(event, at, this.#steps.findLast((step) => step.stepId === event.step_id)?.name, this.#parts.onlyRunningTool());
      case "metrics":
        this.#fields.metrics = event.figures;
        return;
      case "data":
        this.#counts.dataBlocks++;
        this.#hasOutput = true;
        return this.#parts.addData(event, { ...base("data"), endedAt: at });
      case "messages.snapshot":
      case "checkpoint":
        return;
      case "subagent.started":
        this.#operations.begin("node", `agent ${event.subagent_run_id ?? ""}`, event.name, at);
        return this.#parts.applyOther(event, at, base);
      case "subagent.finished":
      case "subagent.failed":
        this.#operations.end("node", `agent ${event.subagent_run_id ?? ""}`);
        return this.#parts.applyOther(event, at, base);
      default:
        return this.#parts.applyOther(event, at, base);
    }
  }

  #applyText(event: Extract<KnownEvent, { type: `text.${string}` | `thinking.${string}` }>, at: number): void {
    this.#hasOutput = true;
    const kind = event.type.startsWith("text.") ? "text" : "thinking";
    if (event.type.endsWith(".started")) {
      if (kind === "text") this.#counts.texts++;
      else this.#counts.thoughts++;
      this.#operations.begin(kind, event.message_id, undefined, at);
    } else if (event.type.endsWith(".finished")) this.#operations.end(kind, event.message_id);
    this.#parts.applyText(event, at);
  }

  #ensureCall(id: string, name: string | undefined, at: number, base: BaseFactory): void {
    this.#hasOutput = true;
    if (this.#parts.call(id) === undefined) {
      this.#counts.toolCalls++;
      this.#parts.add({ kind: "tool", ...base(`call ${id}`), callId: id, name: name ?? "", status: "preparing" });
    } else if (name !== undefined) this.#parts.editCall(id, () => ({ name }));
    this.#operations.begin("tool", id, name, at);
  }

  #callTool(event: ToolCalledEvent, at: number, base: BaseFactory): void {
    this.#ensureCall(event.call_id, event.name, at, base);
    this.#parts.editCall(event.call_id, ({ argumentsText: _, ...call }): ToolPart => ({
      ...call,
      status: "called",
      arguments: event.arguments,
      ...(event.arguments_text !== undefined && { argumentsText: event.arguments_text }),
      ...(event.incomplete !== undefined && { incomplete: event.incomplete }),
      ...(event.description !== undefined && { description: event.description }),
    }));
  }

  #finishCall(event: ToolFinishedEvent, at: number, base: BaseFactory): void {
    this.#ensureCall(event.call_id, event.name, at, base);
    this.#operations.end("tool", event.call_id);
    this.#parts.editCall(event.call_id, () => ({
      status: event.status,
      endedAt: at,
      ...(event.result !== undefined && { result: event.result }),
      ...(event.error !== undefined && { error: event.error }),
      ...(event.duration_ms !== undefined && { durationMs: event.duration_ms }),
    }));
  }

  #requestInteraction(event: InteractionRequestedEvent, base: BaseFactory): void {
    this.#counts.interactions++;
    this.#hasOutput = true;
    this.#parts.addInteraction(event, base(`interaction ${event.interaction_id}`));
  }

  #addState(seq: number, at: number, cause: StateChange["cause"], state: unknown, step?: string): void {
    this.#states.push({ seq, at, cause, state, ...(step !== undefined && { step }) });
  }

  #finishStep(id: string, error: ErrorInfo | undefined, at: number): void {
    this.#operations.end("step", id);
    const index = this.#steps.findLastIndex((step) => step.stepId === id && step.status === "running");
    const step = index === -1 ? undefined : this.#steps.at(index);
    if (step === undefined) return;
    const status = error === undefined ? "completed" : "failed";
    this.#steps.set(index, { ...step, status, endedAt: at, ...(error !== undefined && { error: errorOf(error).message }) });
  }

  #end(status: RunStatus, summary: Summary | undefined, at: number): void {
    this.#status = status;
    this.#since = at;
    this.#fields.endedAt = at;
    if (summary !== undefined) this.#fields.summary = summary;
    this.#usage.end(summary);
    this.#operations.clear();
    this.#parts.close(at);
  }
}
