import { isClosed, type RunwireEvent } from "../events.js";
import type { ErrorInfo, InteractionRequestedEvent, KnownEvent, RunStatus, Summary, ToolCalledEvent, ToolFinishedEvent } from "../generated.js";
import { errorOf } from "./error.js";
import { Kept } from "./kept.js";
import { Activities, type Now } from "./now.js";
import type { Part, ToolPart } from "./parts.js";
import { applyPatch } from "./patch.js";
import { PartList } from "./part-list.js";
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

/** The state after one event that changed it. */
export interface StateChange {
  seq: number;
  /** In milliseconds since the epoch. */
  at: number;
  cause: "snapshot" | "updated" | "patched" | "checkpoint";
  /** The step that left it so. */
  step?: string;
  state: unknown;
}

/** How much of what a run has. */
export interface RunViewCounts {
  events: number;
  texts: number;
  thoughts: number;
  toolCalls: number;
  steps: number;
  dataBlocks: number;
  interactions: number;
}

/** A run as a person reads it. What has not changed since the last snapshot is the same object. */
export interface RunViewSnapshot {
  runId: string;
  threadId?: string;
  agent?: string;
  status: RunStatus;
  /** What a person reads, in order. */
  parts: readonly Part[];
  /** What the run is doing at this moment. */
  now: Now;
  steps: readonly RunStep[];
  usage?: RunViewUsage;
  /** The thread's state now. */
  state?: unknown;
  /** Every state it had, oldest first. */
  states: readonly StateChange[];
  thoughts: { tot?: TotTree; got?: GotGraph };
  /** In milliseconds since the epoch. */
  startedAt?: number;
  endedAt?: number;
  /** Why it failed. */
  error?: ErrorInfo;
  /** A result beside the text. */
  result?: unknown;
  /** The source's own figures of the whole run. */
  summary?: Summary;
  /** Who asked it to stop, and why it was cancelled. */
  cancel?: { requestedAt?: number; by?: string; reason?: string };
  /** The last figures of any kind that the agent told. */
  metrics?: unknown;
  counts: RunViewCounts;
}

/** Gathers the events of one run into what a person reads; each event is taken once, in order. */
export class RunView {
  readonly #runId: string;
  readonly #parts = new PartList();
  readonly #activities = new Activities();
  readonly #usage = new UsageFold();
  readonly #tot = new TotFold();
  readonly #got = new GotFold();
  readonly #steps = new Kept<RunStep>();
  readonly #states = new Kept<StateChange>();
  readonly #counts: RunViewCounts = { events: 0, texts: 0, thoughts: 0, toolCalls: 0, steps: 0, dataBlocks: 0, interactions: 0 };
  /** What stands in a snapshot as it is here. */
  #facts: Pick<RunViewSnapshot, "threadId" | "agent" | "startedAt" | "endedAt" | "error" | "result" | "summary" | "cancel" | "metrics"> = {};
  #thoughts: RunViewSnapshot["thoughts"] = {};
  #status: RunStatus = "pending";
  #since = 0;
  #hasSpoken = false;
  #snapshot: RunViewSnapshot | undefined;

  /** Begins with a run that nothing was written to. */
  constructor(runId: string) {
    this.#runId = runId;
  }

  /** Takes in the next event; one of another run is passed over. */
  apply(event: RunwireEvent): void {
    if (event.run_id !== this.#runId) return;
    const at = Date.parse(event.at);
    this.#counts.events++;
    this.#snapshot = undefined;
    if (this.#status === "pending") {
      this.#status = "running";
      this.#since = at;
      this.#facts.startedAt = at;
      this.#facts.threadId = event.thread_id;
    }
    this.#take(event, at);
  }

  /** Gives the run as it stands: the same object as before if nothing has changed. */
  snapshot(): RunViewSnapshot {
    this.#snapshot ??= this.#gather();
    return this.#snapshot;
  }

  #gather(): RunViewSnapshot {
    const usage = this.#usage.snapshot();
    const last = this.#states.at(-1);
    return {
      runId: this.#runId,
      ...this.#facts,
      status: this.#status,
      parts: this.#parts.snapshot(),
      now: this.#now(),
      steps: this.#steps.snapshot(),
      states: this.#states.snapshot(),
      ...(last !== undefined && { state: last.state }),
      ...(usage !== undefined && { usage }),
      thoughts: this.#thoughtsNow(),
      counts: { ...this.#counts },
    };
  }

  #thoughtsNow(): RunViewSnapshot["thoughts"] {
    const [tot, got] = [this.#tot.snapshot(), this.#got.snapshot()];
    if (tot !== this.#thoughts.tot || got !== this.#thoughts.got) {
      this.#thoughts = { ...(tot !== undefined && { tot }), ...(got !== undefined && { got }) };
    }
    return this.#thoughts;
  }

  #now(): Now {
    if (this.#status === "suspended") {
      const asked = this.#parts.findLast((part) => part.kind === "interaction" && part.status === "open");
      const name = asked?.kind === "interaction" ? (asked.title ?? asked.name) : undefined;
      return { kind: "waiting", since: this.#since, ...(name !== undefined && { name }) };
    }
    const isOver = isClosed(this.#status);
    const newest = isOver ? undefined : this.#activities.newest();
    return newest ?? { kind: isOver || this.#hasSpoken ? "idle" : "starting", since: this.#since };
  }

  #take(event: KnownEvent, at: number): void {
    const place = this.#parts.place(event, at);
    switch (event.type) {
      case "run.started":
        if (event.agent !== undefined) this.#facts.agent = event.agent;
        if (event.message !== undefined) this.#parts.add({ kind: "user", ...place("user"), endedAt: at, text: event.message });
        return;
      case "run.completed":
        if (event.reply !== undefined && event.reply !== "" && this.#counts.texts === 0) {
          this.#parts.add({ kind: "text", ...place("reply"), endedAt: at, messageId: "", text: event.reply });
        }
        if (event.result !== undefined) this.#facts.result = event.result;
        return this.#end("completed", event.summary, at);
      case "run.failed":
        this.#facts.error = errorOf(event.error);
        this.#parts.fail(this.#facts.error, { ...place("error"), endedAt: at });
        return this.#end("failed", event.summary, at);
      case "run.cancelled":
        // What the person said is worth more than what the agent made of it.
        this.#facts.cancel = { ...(event.reason !== undefined && { reason: event.reason }), ...this.#facts.cancel };
        return this.#end("cancelled", event.summary, at);
      case "run.cancel_requested":
        this.#facts.cancel = {
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
        this.#hasSpoken = true;
        this.#counts.steps++;
        this.#steps.push({ stepId: event.step_id ?? "", name: event.name, status: "running", startedAt: at });
        return this.#activities.begin("step", event.step_id ?? "", event.name, at);
      case "step.finished":
        return this.#stepFinished(event.step_id ?? "", event.error, at);
      case "text.started":
      case "text.delta":
      case "text.finished":
      case "thinking.started":
      case "thinking.delta":
      case "thinking.finished":
        return this.#said(event, at);
      case "tool.args_started":
        this.#call(event.call_id, event.name, at, place);
        return;
      case "tool.args_delta":
        return this.#parts.editCall(event.call_id, (call) => ({ argumentsText: (call.argumentsText ?? "") + event.delta }));
      case "tool.called":
        return this.#called(event, at, place);
      case "tool.started":
        this.#call(event.call_id, event.name, at, place);
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
        return this.#finished(event, at, place);
      case "interaction.requested":
        return this.#asked(event, place);
      case "interaction.resolved": {
        const { decision, values, reason, by } = event;
        const answer = { decision, ...(values !== undefined && { values }), ...(reason !== undefined && { reason }), ...(by !== undefined && { by }) };
        return this.#parts.edit("interaction", event.interaction_id, () => ({ status: decision, endedAt: at, answer }));
      }
      case "state.snapshot":
        return this.#changed(event.seq, at, "snapshot", event.state);
      case "state.updated":
        return this.#changed(event.seq, at, "updated", event.state, event.step);
      case "state.patched":
        return this.#changed(event.seq, at, "patched", applyPatch(this.#states.at(-1)?.state ?? {}, event.patch));
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
        return this.#activities.begin("node", `node ${event.node_id}`, event.node_id, at);
      case "got.node_completed":
        this.#got.completed(event, at);
        return this.#activities.end("node", `node ${event.node_id}`);
      case "got.node_failed":
        this.#got.failed(event, at);
        return this.#activities.end("node", `node ${event.node_id}`);
      case "got.expanded":
        return this.#got.expanded(event);
      case "usage":
        return this.#usage.add(event, at, this.#steps.findLast((step) => step.stepId === event.step_id)?.name, this.#parts.onlyTool());
      case "metrics":
        this.#facts.metrics = event.figures;
        return;
      case "data":
        this.#counts.dataBlocks++;
        this.#hasSpoken = true;
        return this.#parts.takeData(event, { ...place("data"), endedAt: at });
      case "messages.snapshot":
      case "checkpoint":
        return;
      case "subagent.started":
        this.#activities.begin("node", `agent ${event.subagent_run_id ?? ""}`, event.name, at);
        return this.#parts.takeOther(event, at, place);
      case "subagent.finished":
      case "subagent.failed":
        this.#activities.end("node", `agent ${event.subagent_run_id ?? ""}`);
        return this.#parts.takeOther(event, at, place);
      default:
        return this.#parts.takeOther(event, at, place);
    }
  }

  #said(event: Extract<KnownEvent, { type: `text.${string}` | `thinking.${string}` }>, at: number): void {
    this.#hasSpoken = true;
    const kind = event.type.startsWith("text.") ? "text" : "thinking";
    if (event.type.endsWith(".started")) {
      if (kind === "text") this.#counts.texts++;
      else this.#counts.thoughts++;
      this.#activities.begin(kind, event.message_id, undefined, at);
    } else if (event.type.endsWith(".finished")) this.#activities.end(kind, event.message_id);
    this.#parts.takeText(event, at);
  }

  #call(id: string, name: string | undefined, at: number, place: Place): void {
    this.#hasSpoken = true;
    if (this.#parts.call(id) === undefined) {
      this.#counts.toolCalls++;
      this.#parts.add({ kind: "tool", ...place(`call ${id}`), callId: id, name: name ?? "", status: "preparing" });
    } else if (name !== undefined) this.#parts.editCall(id, () => ({ name }));
    this.#activities.begin("tool", id, name, at);
  }

  #called(event: ToolCalledEvent, at: number, place: Place): void {
    this.#call(event.call_id, event.name, at, place);
    this.#parts.editCall(event.call_id, ({ argumentsText: _, ...call }): ToolPart => ({
      ...call,
      status: "called",
      arguments: event.arguments,
      ...(event.arguments_text !== undefined && { argumentsText: event.arguments_text }),
      ...(event.incomplete !== undefined && { incomplete: event.incomplete }),
      ...(event.description !== undefined && { description: event.description }),
    }));
  }

  #finished(event: ToolFinishedEvent, at: number, place: Place): void {
    this.#call(event.call_id, event.name, at, place);
    this.#activities.end("tool", event.call_id);
    this.#parts.editCall(event.call_id, () => ({
      status: event.status,
      endedAt: at,
      ...(event.result !== undefined && { result: event.result }),
      ...(event.error !== undefined && { error: event.error }),
      ...(event.duration_ms !== undefined && { durationMs: event.duration_ms }),
    }));
  }

  #asked(event: InteractionRequestedEvent, place: Place): void {
    this.#counts.interactions++;
    this.#hasSpoken = true;
    this.#parts.takeQuestion(event, place(`interaction ${event.interaction_id}`));
  }

  #changed(seq: number, at: number, cause: StateChange["cause"], state: unknown, step?: string): void {
    this.#states.push({ seq, at, cause, state, ...(step !== undefined && { step }) });
  }

  #stepFinished(id: string, error: ErrorInfo | undefined, at: number): void {
    this.#activities.end("step", id);
    const place = this.#steps.findLastIndex((step) => step.stepId === id && step.status === "running");
    const step = place === -1 ? undefined : this.#steps.at(place);
    if (step === undefined) return;
    const status = error === undefined ? "completed" : "failed";
    this.#steps.put(place, { ...step, status, endedAt: at, ...(error !== undefined && { error: errorOf(error).message }) });
  }

  #end(status: RunStatus, summary: Summary | undefined, at: number): void {
    this.#status = status;
    this.#since = at;
    this.#facts.endedAt = at;
    if (summary !== undefined) this.#facts.summary = summary;
    this.#usage.end(summary);
    this.#activities.clear();
    this.#parts.close(at);
  }
}

type Place = ReturnType<PartList["place"]>;
