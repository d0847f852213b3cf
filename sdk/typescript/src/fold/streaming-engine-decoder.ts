import type { ErrorInfo, KnownEvent, Summary, ToolCalledEvent } from "../generated.js";
import { errorOf } from "./error.js";
import { compareWhole } from "./whole.js";

type Fields = Record<string, unknown>;

/** An event without its envelope. */
export type DecodedEvent = Omit<KnownEvent, "seq" | "at" | "thread_id" | "run_id"> & Fields;

interface Call {
  id: string;
  name: string;
}

/**
 * Decodes frames of StreamingEngine, including legacy ones, into the events of one run.
 *
 * Its state is what the frames omit: the text that a delta belongs to, and the tool call.
 */
export class StreamingEngineDecoder {
  #runId = "";
  /** Ids of the text and of the thinking that deltas without an id belong to. */
  #currentText: string | undefined;
  #currentThinking: string | undefined;
  /** Open texts, with the subagent of each. */
  readonly #openTexts = new Map<string, string | undefined>();
  readonly #openThinking = new Set<string>();
  readonly #startedThinking = new Set<string>();
  /** Texts of the assistant by id, to compare whole texts with. */
  readonly #texts = new Map<string, string>();
  readonly #generatedIds = { texts: 0, thoughts: 0, calls: 0 };
  #openCalls: Call[] = [];
  #openSteps: { id: string; name: string }[] = [];
  #openInteractions: string[] = [];
  #fatal: ErrorInfo | undefined;
  #isClosed = false;
  #output: DecodedEvent[] = [];

  /** The run's id; empty until a frame names it. */
  get runId(): string {
    return this.#runId;
  }

  /** Decodes a frame; returns no events for other runs and after the end. */
  decode(frame: Fields): DecodedEvent[] {
    const metadata = objectOf(frame["metadata"]) ?? {};
    const run = stringOf(metadata["request_id"]) ?? (frame["type"] === "session_start" ? stringOf(objectOf(frame["data"])?.["request_id"]) : undefined);
    if (run !== undefined && this.#runId === "") this.#runId = run;
    if (this.#isClosed || (run !== undefined && run !== this.#runId)) return [];
    this.#output = [];
    const residue = metadata["runwire"];
    if (Array.isArray(residue)) {
      // The residue holds the original events and takes precedence over the native fields.
      if (!this.#emitContinuation(residue)) for (const event of residue as unknown[]) this.#emitExtension(event);
    } else if (frame["type"] === "runwire") this.#emitExtension(frame["data"]);
    else this.#decodeNative(stringOf(frame["type"]) ?? "", frame, metadata);
    return this.#output;
  }

  /** Fails a run whose stream ended without a terminal frame. */
  end(): DecodedEvent[] {
    this.#output = [];
    if (!this.#isClosed) this.#fail(this.#fatal ?? { code: "stream_ended", message: "the stream ended before the run did" }, undefined);
    return this.#output;
  }

  #decodeNative(type: string, frame: Fields, metadata: Fields): void {
    // Legacy frames are flat, or nested without metadata; a flat `dataframe_data` has its own `data` field.
    const isTable = type === "dataframe_data" && frame["metadata"] === undefined;
    const data = (isTable ? undefined : objectOf(frame["data"])) ?? frame;
    const id = stringOf(data["tool_id"]);
    switch (type) {
      case "session_start":
        return this.#emit({ type: "run.started" });
      case "thinking":
        return this.#addThinking(stringOf(data["content"]) ?? "", stringOf(data["stage"]));
      case "content":
      case "token":
        this.#addText(stringOf(data["content"]) ?? "", stringOf(data["format"]));
        if (data["is_complete"] === true) this.#endText();
        return;
      case "final_answer":
        return this.#addWhole(stringOf(data["content"]) ?? "");
      case "tool_call_start":
      case "tool_call":
        return this.#startCall(id, stringOf(data["tool_name"]) ?? "unknown", data["arguments"] ?? data["tool_args"], stringOf(data["description"]));
      case "tool_call_progress":
        return this.#emit({ type: "tool.progress", call_id: this.#ensureCall(id), ...definedFields({ progress: numberOf(data["progress"]), message: stringOf(data["message"]) }) });
      case "tool_call_end":
      case "tool_result": {
        const call = this.#ensureCall(id, stringOf(data["tool_name"]));
        const error = data["error"] === undefined || data["error"] === null ? undefined : errorOf(data["error"]);
        // The document has a code on every error; this one says that the source has none.
        if (error?.code === "ERROR") delete error.code;
        const result = data["result"] ?? undefined;
        const status = toolStatus(data["status"]);
        return this.#emit({ type: "tool.finished", call_id: call, status, ...definedFields({ result, error, duration_ms: numberOf(metadata["duration_ms"]) }) });
      }
      case "data":
        return this.#addData(stringOf(data["data_type"]) ?? "custom", data["data"] ?? null, data["metadata"] ?? undefined);
      case "dataframe_data":
        return this.#addTable(objectOf(data["data"]) ?? data);
      case "error": {
        const error = { message: stringOf(data["message"]) ?? "", ...definedFields({ kind: stringOf(data["error_type"]), details: data["details"] ?? undefined }) };
        return this.#emit({ type: "notice", level: "error", ...error, fatal: data["recoverable"] !== true });
      }
      case "done":
      case "session_end":
        return this.#end(type === "done" ? undefined : data["status"], objectOf(data["summary"]) as Summary | undefined);
    }
  }

  /** Emits the event of a slot or a residue; it may refer to a text whose native frames have no id. */
  #emitExtension(value: unknown): void {
    const event = objectOf(value) as DecodedEvent | undefined;
    if (typeof event?.type !== "string") return;
    const slot = event as unknown as KnownEvent;
    switch (slot.type) {
      case "text.started": {
        const follows = this.#currentText !== undefined && slot.subagent_run_id === undefined && (slot.role ?? "assistant") === "assistant";
        if (follows) this.#endText();
        this.#emit(event);
        if (follows) this.#currentText = slot.message_id;
        return;
      }
      case "thinking.started": {
        const follows = this.#currentThinking !== undefined && slot.subagent_run_id === undefined;
        this.#emit(event);
        if (follows) this.#currentThinking = slot.message_id;
        return;
      }
      case "text.finished": {
        const last = slot.content === undefined ? undefined : [...this.#texts.keys()].at(-1);
        const id = this.#openTexts.has(slot.message_id) ? undefined : (this.#currentText ?? last);
        return this.#emit(id === undefined ? event : { ...event, message_id: id });
      }
      case "thinking.finished":
        return this.#emit(this.#openThinking.has(slot.message_id) ? event : { ...event, message_id: this.#currentThinking ?? slot.message_id });
      default:
        return this.#emit(event);
    }
  }

  /** Emits an event and updates the state. */
  #emit(fields: { type: KnownEvent["type"] } & Fields): void {
    const event = fields as unknown as KnownEvent;
    switch (event.type) {
      case "text.started":
        this.#currentThinking = undefined;
        this.#openThinking.clear();
        this.#openTexts.set(event.message_id, event.subagent_run_id);
        if ((event.role ?? "assistant") === "assistant") this.#texts.set(event.message_id, "");
        break;
      case "text.delta":
        // A text beside another one begins with its first delta.
        if (!this.#openTexts.has(event.message_id) && !this.#texts.has(event.message_id)) this.#emit({ type: "text.started", ...ownerOf(event) });
        this.#texts.set(event.message_id, (this.#texts.get(event.message_id) ?? "") + event.content);
        break;
      case "text.finished":
        this.#openTexts.delete(event.message_id);
        if (event.message_id === this.#currentText) this.#currentText = undefined;
        if (event.content !== undefined) this.#texts.set(event.message_id, event.content);
        break;
      case "thinking.started":
        this.#openThinking.add(event.message_id);
        this.#startedThinking.add(event.message_id);
        break;
      case "thinking.delta":
        if (!this.#startedThinking.has(event.message_id)) this.#emit({ type: "thinking.started", ...ownerOf(event) });
        break;
      case "thinking.finished":
        this.#openThinking.delete(event.message_id);
        if (event.message_id === this.#currentThinking) this.#currentThinking = undefined;
        break;
      case "tool.called":
        this.#endTexts(event);
        this.#openCalls.push({ id: event.call_id, name: event.name });
        break;
      case "tool.finished":
        this.#openCalls = this.#openCalls.filter((call) => call.id !== event.call_id);
        break;
      case "step.started":
        this.#endTexts(event);
        this.#openSteps.push({ id: event.step_id ?? "", name: event.name });
        break;
      case "step.finished":
        this.#endTexts(event);
        this.#openSteps = this.#openSteps.filter((step) => step.id !== event.step_id);
        break;
      case "interaction.requested":
        this.#endTexts();
        this.#openInteractions.push(event.interaction_id);
        break;
      case "interaction.resolved":
        this.#openInteractions = this.#openInteractions.filter((id) => id !== event.interaction_id);
        break;
      case "notice":
        if (event.fatal === true) this.#fatal = { message: event.message, ...definedFields({ code: event.code, kind: event.kind, domain: event.domain, details: event.details }) };
        break;
      case "run.completed":
        this.#close(undefined);
        break;
      case "run.failed":
        this.#close(errorOf(event.error).message);
        break;
      case "run.cancelled":
        this.#close("cancelled");
        break;
    }
    this.#output.push(fields as DecodedEvent);
  }

  #addThinking(content: string, stage: string | undefined): void {
    this.#endText();
    if (this.#currentThinking === undefined) {
      const id = `${this.#runId}:t${++this.#generatedIds.thoughts}`;
      this.#emit({ type: "thinking.started", message_id: id, ...definedFields({ stage }) });
      this.#currentThinking = id;
    }
    this.#emit({ type: "thinking.delta", message_id: this.#currentThinking, content, ...definedFields({ stage }) });
  }

  #addText(content: string, format?: string): void {
    if (this.#currentText === undefined) {
      if (content === "") return;
      const id = `${this.#runId}:m${++this.#generatedIds.texts}`;
      this.#emit({ type: "text.started", message_id: id });
      this.#currentText = id;
    }
    this.#emit({ type: "text.delta", message_id: this.#currentText, content, ...definedFields({ format }) });
  }

  /** Emits the part of a whole text that the run does not have yet. */
  #addWhole(whole: string): void {
    const known = [...this.#texts].map(([id, content]) => ({ id, content })).filter(({ content }) => content.trim() !== "");
    const compared = compareWhole(known, whole);
    if (compared.adds === "nothing") return;
    if (compared.adds === "message") {
      if (known.length > 0) this.#endText();
      return this.#addText(whole);
    }
    const last = known.at(-1)?.id ?? "";
    if (!this.#openTexts.has(last)) this.#startContinuation(last);
    this.#emit({ type: "text.delta", message_id: this.#currentText ?? last, content: compared.rest });
  }

  /** Emits the residue of a delta that continues the last text, whose native frames have no id. */
  #emitContinuation(residue: unknown[]): boolean {
    const [started, delta] = residue.map((event) => objectOf(event) as KnownEvent | undefined);
    if (residue.length !== 2 || started?.type !== "text.started" || delta?.type !== "text.delta") return false;
    const last = [...this.#texts].filter(([, content]) => content !== "").at(-1)?.[0];
    this.#startContinuation(last ?? started.message_id);
    this.#emit({ ...delta, message_id: this.#currentText });
    return true;
  }

  /** Starts a text that continues a finished one; deltas without an id then belong to it. */
  #startContinuation(last: string): void {
    this.#endText();
    const base = /^(.*)#\d+$/s.exec(last)?.[1] ?? last;
    let number = 2;
    while (this.#texts.has(`${base}#${number}`)) number++;
    const id = this.#texts.has(last) ? `${base}#${number}` : last;
    this.#emit({ type: "text.started", message_id: id });
    this.#currentText = id;
  }

  #endText(): void {
    if (this.#currentText !== undefined) this.#emit({ type: "text.finished", message_id: this.#currentText });
  }

  /** Ends the open texts of an event's owner, or all, as the server does, because another kind of event follows; forgets the thinking. */
  #endTexts(owner?: { subagent_run_id?: string | undefined }): void {
    for (const [message_id, subagent_run_id] of [...this.#openTexts]) {
      if (!owner || owner.subagent_run_id === subagent_run_id) this.#emit({ type: "text.finished", ...ownerOf({ message_id, subagent_run_id }) });
    }
    this.#currentThinking = undefined;
    this.#openThinking.clear();
  }

  #startCall(id: string | undefined, name: string, given: unknown, description: string | undefined): void {
    if (id !== undefined && this.#openCalls.some((call) => call.id === id)) return;
    const call_id = id ?? `${this.#runId}:c${++this.#generatedIds.calls}`;
    this.#emit({ type: "tool.called", call_id, name, ...argumentsOf(given), ...definedFields({ description }) });
  }

  /** Returns the id of an open call; emits a call if it is unknown. */
  #ensureCall(id: string | undefined, name = "unknown"): string {
    const call = id === undefined ? this.#openCalls.at(-1) : this.#openCalls.find((open) => open.id === id);
    if (call !== undefined) return call.id;
    const made = id ?? `${this.#runId}:c${++this.#generatedIds.calls}`;
    this.#emit({ type: "tool.called", call_id: made, name, arguments: {} });
    return made;
  }

  #addData(data_type: string, data: unknown, metadata: unknown): void {
    const [call, another] = this.#openCalls;
    const call_id = another === undefined ? call?.id : undefined;
    this.#emit({ type: "data", data_type, data, ...definedFields({ metadata, call_id }) });
  }

  /** Emits a legacy table as a `data` event. */
  #addTable(table: Fields): void {
    const { type: _, dataframe_name, columns, data, ...rest } = table;
    this.#addData("dataframe", { ...definedFields({ name: dataframe_name, columns, rows: data }), ...rest }, undefined);
  }

  #end(status: unknown, summary: Summary | undefined): void {
    const totals = definedFields({ summary });
    if (status === "error" || status === "failed") this.#fail(this.#fatal ?? { message: "the run failed" }, summary);
    else if (status === "cancelled" || status === "canceled") this.#emit({ type: "run.cancelled", ...totals });
    else this.#emit({ type: "run.completed", ...totals });
  }

  #fail(error: ErrorInfo, summary: Summary | undefined): void {
    this.#emit({ type: "run.failed", error, ...definedFields({ summary }) });
  }

  /** Closes open calls, steps and interactions at the end of the run, as the server does; without a reason, calls stay open. */
  #close(reason: string | undefined): void {
    this.#isClosed = true;
    const error = reason === undefined ? undefined : { message: reason };
    if (error !== undefined) for (const call of this.#openCalls) this.#output.push({ type: "tool.finished", call_id: call.id, status: "failure", error });
    for (const step of this.#openSteps.reverse()) this.#output.push({ type: "step.finished", name: step.name, step_id: step.id, ...definedFields({ error }) });
    for (const id of this.#openInteractions) this.#output.push({ type: "interaction.resolved", interaction_id: id, decision: "cancelled" });
  }
}

/** Returns the fields of a piece that say which text or thinking it belongs to. */
function ownerOf({ message_id, subagent_run_id }: { message_id: string; subagent_run_id?: string | undefined }) {
  return { message_id, ...definedFields({ subagent_run_id }) };
}

function objectOf(value: unknown): Fields | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : undefined;
}

function stringOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

function numberOf(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}

/** Returns the fields that are not undefined. */
function definedFields<T extends Fields>(given: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as { [K in keyof T]?: Exclude<T[K], undefined> };
}

/** Parses the arguments of a call: an object, or a string with JSON. */
function argumentsOf(given: unknown): Pick<ToolCalledEvent, "arguments" | "arguments_text"> {
  const whole = objectOf(given);
  if (whole !== undefined) return { arguments: whole };
  if (given === undefined || given === null) return { arguments: {} };
  const text = (typeof given === "string" ? given : JSON.stringify(given)).trim();
  try {
    const parsed = objectOf(JSON.parse(text));
    if (parsed !== undefined) return { arguments: parsed };
  } catch {
    // Not JSON: kept as text.
  }
  return text === "" ? { arguments: {} } : { arguments: {}, arguments_text: text };
}

function toolStatus(value: unknown): "success" | "failure" | "partial" {
  if (value === "failed" || value === "failure" || value === "error") return "failure";
  return value === "partial" ? "partial" : "success";
}
