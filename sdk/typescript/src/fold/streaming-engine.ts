import type { ErrorInfo, KnownEvent, Summary, ToolCalledEvent } from "../generated.js";
import { errorOf } from "./error.js";
import { compareWhole } from "./whole.js";

type Fields = Record<string, unknown>;

/** An event whose envelope is the frame's. */
export type Read = Omit<KnownEvent, "seq" | "at" | "thread_id" | "run_id"> & Fields;

interface Call {
  id: string;
  name: string;
}

/**
 * Reads frames of StreamingEngine, its older ones too, as events of one run.
 *
 * What it must know of the run is what its frames leave out: which text a piece belongs to, and which call.
 */
export class StreamingEngineReader {
  #runId = "";
  /** The text that pieces without an id belong to, and the thought. */
  #text: string | undefined;
  #thought: string | undefined;
  readonly #openTexts = new Set<string>();
  readonly #openThoughts = new Set<string>();
  /** The assistant's texts, by id: a whole text is compared with them. */
  readonly #told = new Map<string, string>();
  readonly #minted = { texts: 0, thoughts: 0, calls: 0 };
  #calls: Call[] = [];
  #steps: { id: string; name: string }[] = [];
  #questions: string[] = [];
  #fatal: ErrorInfo | undefined;
  #isClosed = false;
  #out: Read[] = [];

  /** The run's id; empty until a frame names it. */
  get runId(): string {
    return this.#runId;
  }

  /** Reads a frame; a frame of another run, or after the end, is nothing. */
  read(frame: Fields): Read[] {
    const metadata = fields(frame["metadata"]) ?? {};
    const run = text(metadata["request_id"]) ?? (frame["type"] === "session_start" ? text(fields(frame["data"])?.["request_id"]) : undefined);
    if (run !== undefined && this.#runId === "") this.#runId = run;
    if (this.#isClosed || (run !== undefined && run !== this.#runId)) return [];
    this.#out = [];
    const residue = metadata["runwire"];
    if (Array.isArray(residue)) {
      // The events that the frame stands for, whatever its native fields say.
      if (!this.#continuation(residue)) for (const event of residue as unknown[]) this.#slot(event);
    } else if (frame["type"] === "runwire") this.#slot(frame["data"]);
    else this.#native(text(frame["type"]) ?? "", frame, metadata);
    return this.#out;
  }

  /** Ends a run whose stream has ended without saying so. */
  end(): Read[] {
    this.#out = [];
    if (!this.#isClosed) this.#fail(this.#fatal ?? { code: "stream_ended", message: "the stream ended before the run did" }, undefined);
    return this.#out;
  }

  #native(type: string, frame: Fields, metadata: Fields): void {
    // The older events are flat, or nested without metadata; a flat `dataframe_data` has a `data` of its own.
    const isTable = type === "dataframe_data" && frame["metadata"] === undefined;
    const data = (isTable ? undefined : fields(frame["data"])) ?? frame;
    const id = text(data["tool_id"]);
    switch (type) {
      case "session_start":
        return this.#say({ type: "run.started" });
      case "thinking":
        return this.#think(text(data["content"]) ?? "", text(data["stage"]));
      case "content":
      case "token":
        this.#piece(text(data["content"]) ?? "", text(data["format"]));
        if (data["is_complete"] === true) this.#endText();
        return;
      case "final_answer":
        return this.#whole(text(data["content"]) ?? "");
      case "tool_call_start":
      case "tool_call":
        return this.#called(id, text(data["tool_name"]) ?? "unknown", data["arguments"] ?? data["tool_args"], text(data["description"]));
      case "tool_call_progress":
        return this.#say({ type: "tool.progress", call_id: this.#ensure(id), ...known({ progress: number(data["progress"]), message: text(data["message"]) }) });
      case "tool_call_end":
      case "tool_result": {
        const call = this.#ensure(id, text(data["tool_name"]));
        const error = data["error"] === undefined || data["error"] === null ? undefined : errorOf(data["error"]);
        const result = data["result"] ?? undefined;
        const status = toolStatus(data["status"]);
        return this.#say({ type: "tool.finished", call_id: call, status, ...known({ result, error, duration_ms: number(metadata["duration_ms"]) }) });
      }
      case "data":
        return this.#block(text(data["data_type"]) ?? "custom", data["data"] ?? null, data["metadata"] ?? undefined);
      case "dataframe_data":
        return this.#table(fields(data["data"]) ?? data);
      case "error": {
        const error = { message: text(data["message"]) ?? "", ...known({ kind: text(data["error_type"]), details: data["details"] ?? undefined }) };
        return this.#say({ type: "notice", level: "error", ...error, fatal: data["recoverable"] !== true });
      }
      case "done":
      case "session_end":
        return this.#end(type === "done" ? undefined : data["status"], fields(data["summary"]) as Summary | undefined);
    }
  }

  /** Takes the event of a slot or a residue; it may be about a text that the frames around it tell without an id. */
  #slot(value: unknown): void {
    const event = fields(value) as Read | undefined;
    if (typeof event?.type !== "string") return;
    const slot = event as unknown as KnownEvent;
    switch (slot.type) {
      case "text.started": {
        const follows = this.#text !== undefined && slot.subagent_run_id === undefined && (slot.role ?? "assistant") === "assistant";
        if (follows) this.#endText();
        this.#say(event);
        if (follows) this.#text = slot.message_id;
        return;
      }
      case "thinking.started": {
        const follows = this.#thought !== undefined && slot.subagent_run_id === undefined;
        this.#say(event);
        if (follows) this.#thought = slot.message_id;
        return;
      }
      case "text.finished": {
        const told = slot.content === undefined ? undefined : [...this.#told.keys()].at(-1);
        const id = this.#openTexts.has(slot.message_id) ? undefined : (this.#text ?? told);
        return this.#say(id === undefined ? event : { ...event, message_id: id });
      }
      case "thinking.finished":
        return this.#say(this.#openThoughts.has(slot.message_id) ? event : { ...event, message_id: this.#thought ?? slot.message_id });
      default:
        return this.#say(event);
    }
  }

  /** Gives out an event, and remembers what it means for those to come. */
  #say(said: { type: KnownEvent["type"] } & Fields): void {
    const event = said as unknown as KnownEvent;
    switch (event.type) {
      case "text.started":
        this.#thought = undefined;
        this.#openThoughts.clear();
        this.#openTexts.add(event.message_id);
        if ((event.role ?? "assistant") === "assistant") this.#told.set(event.message_id, "");
        break;
      case "text.delta":
        this.#told.set(event.message_id, (this.#told.get(event.message_id) ?? "") + event.content);
        break;
      case "text.finished":
        this.#openTexts.delete(event.message_id);
        if (event.message_id === this.#text) this.#text = undefined;
        if (event.content !== undefined) this.#told.set(event.message_id, event.content);
        break;
      case "thinking.started":
        this.#openThoughts.add(event.message_id);
        break;
      case "thinking.finished":
        this.#openThoughts.delete(event.message_id);
        if (event.message_id === this.#thought) this.#thought = undefined;
        break;
      case "tool.called":
        this.#moveOn();
        this.#calls.push({ id: event.call_id, name: event.name });
        break;
      case "tool.finished":
        this.#calls = this.#calls.filter((call) => call.id !== event.call_id);
        break;
      case "step.started":
        this.#moveOn();
        this.#steps.push({ id: event.step_id ?? "", name: event.name });
        break;
      case "step.finished":
        this.#moveOn();
        this.#steps = this.#steps.filter((step) => step.id !== event.step_id);
        break;
      case "interaction.requested":
        this.#moveOn();
        this.#questions.push(event.interaction_id);
        break;
      case "interaction.resolved":
        this.#questions = this.#questions.filter((id) => id !== event.interaction_id);
        break;
      case "notice":
        if (event.fatal === true) this.#fatal = { message: event.message, ...known({ code: event.code, kind: event.kind, domain: event.domain, details: event.details }) };
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
    this.#out.push(said as Read);
  }

  #think(content: string, stage: string | undefined): void {
    this.#endText();
    if (this.#thought === undefined) {
      const id = `${this.#runId}:t${++this.#minted.thoughts}`;
      this.#say({ type: "thinking.started", message_id: id, ...known({ stage }) });
      this.#thought = id;
    }
    this.#say({ type: "thinking.delta", message_id: this.#thought, content, ...known({ stage }) });
  }

  #piece(content: string, format?: string): void {
    if (this.#text === undefined) {
      if (content === "") return;
      const id = `${this.#runId}:m${++this.#minted.texts}`;
      this.#say({ type: "text.started", message_id: id });
      this.#text = id;
    }
    this.#say({ type: "text.delta", message_id: this.#text, content, ...known({ format }) });
  }

  /** Takes a whole text, as far as the run does not have it yet. */
  #whole(whole: string): void {
    const told = [...this.#told].map(([id, content]) => ({ id, content })).filter(({ content }) => content.trim() !== "");
    const compared = compareWhole(told, whole);
    if (compared.adds === "nothing") return;
    if (compared.adds === "message") {
      if (told.length > 0) this.#endText();
      return this.#piece(whole);
    }
    const last = told.at(-1)?.id ?? "";
    if (!this.#openTexts.has(last)) this.#continue(last);
    this.#say({ type: "text.delta", message_id: this.#text ?? last, content: compared.rest });
  }

  /** Takes the residue of a piece that continues the last text, of which the frames before told no id. */
  #continuation(residue: unknown[]): boolean {
    const [started, delta] = residue.map((event) => fields(event) as KnownEvent | undefined);
    if (residue.length !== 2 || started?.type !== "text.started" || delta?.type !== "text.delta") return false;
    const last = [...this.#told].filter(([, content]) => content !== "").at(-1)?.[0];
    this.#continue(last ?? started.message_id);
    this.#say({ ...delta, message_id: this.#text });
    return true;
  }

  /** Begins a text that continues one that is closed; what follows without an id is its. */
  #continue(last: string): void {
    this.#endText();
    const base = /^(.*)#\d+$/s.exec(last)?.[1] ?? last;
    let number = 2;
    while (this.#told.has(`${base}#${number}`)) number++;
    const id = this.#told.has(last) ? `${base}#${number}` : last;
    this.#say({ type: "text.started", message_id: id });
    this.#text = id;
  }

  #endText(): void {
    if (this.#text !== undefined) this.#say({ type: "text.finished", message_id: this.#text });
  }

  /** Leaves the texts and thoughts behind: something else has begun. */
  #moveOn(): void {
    this.#text = undefined;
    this.#thought = undefined;
    this.#openTexts.clear();
    this.#openThoughts.clear();
  }

  #called(id: string | undefined, name: string, given: unknown, description: string | undefined): void {
    if (id !== undefined && this.#calls.some((call) => call.id === id)) return;
    const call_id = id ?? `${this.#runId}:c${++this.#minted.calls}`;
    this.#say({ type: "tool.called", call_id, name, ...argumentsOf(given), ...known({ description }) });
  }

  /** Finds the call that something is said of; one that nobody made is made. */
  #ensure(id: string | undefined, name = "unknown"): string {
    const call = id === undefined ? this.#calls.at(-1) : this.#calls.find((open) => open.id === id);
    if (call !== undefined) return call.id;
    const made = id ?? `${this.#runId}:c${++this.#minted.calls}`;
    this.#say({ type: "tool.called", call_id: made, name, arguments: {} });
    return made;
  }

  #block(data_type: string, data: unknown, metadata: unknown): void {
    const [call, another] = this.#calls;
    const call_id = another === undefined ? call?.id : undefined;
    this.#say({ type: "data", data_type, data, ...known({ metadata, call_id }) });
  }

  /** Reads an older table into the form that `data` has. */
  #table(table: Fields): void {
    const { type: _, dataframe_name, columns, data, ...rest } = table;
    this.#block("dataframe", { ...known({ name: dataframe_name, columns, rows: data }), ...rest }, undefined);
  }

  #end(status: unknown, summary: Summary | undefined): void {
    const figures = known({ summary });
    if (status === "error" || status === "failed") this.#fail(this.#fatal ?? { message: "the run failed" }, summary);
    else if (status === "cancelled" || status === "canceled") this.#say({ type: "run.cancelled", ...figures });
    else this.#say({ type: "run.completed", ...figures });
  }

  #fail(error: ErrorInfo, summary: Summary | undefined): void {
    this.#say({ type: "run.failed", error, ...known({ summary }) });
  }

  /** Closes whatever is open at an end, as the server does; without a reason, unanswered calls stay open. */
  #close(why: string | undefined): void {
    this.#isClosed = true;
    const error = why === undefined ? undefined : { message: why };
    if (error !== undefined) for (const call of this.#calls) this.#out.push({ type: "tool.finished", call_id: call.id, status: "failure", error });
    for (const step of this.#steps.reverse()) this.#out.push({ type: "step.finished", name: step.name, step_id: step.id, ...known({ error }) });
    for (const id of this.#questions) this.#out.push({ type: "interaction.resolved", interaction_id: id, decision: "cancelled" });
  }
}

function fields(value: unknown): Fields | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : undefined;
}

function text(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

function number(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}

/** Leaves out what is undefined. */
function known<T extends Fields>(given: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as { [K in keyof T]?: Exclude<T[K], undefined> };
}

/** Reads the arguments of a call: an object, or a string that holds one. */
function argumentsOf(given: unknown): Pick<ToolCalledEvent, "arguments" | "arguments_text"> {
  const whole = fields(given);
  if (whole !== undefined) return { arguments: whole };
  if (given === undefined || given === null) return { arguments: {} };
  const words = (typeof given === "string" ? given : JSON.stringify(given)).trim();
  try {
    const parsed = fields(JSON.parse(words));
    if (parsed !== undefined) return { arguments: parsed };
  } catch {
    // It is no JSON, and kept as the text it is.
  }
  return words === "" ? { arguments: {} } : { arguments: {}, arguments_text: words };
}

function toolStatus(word: unknown): "success" | "failure" | "partial" {
  if (word === "failed" || word === "failure" || word === "error") return "failure";
  return word === "partial" ? "partial" : "success";
}
