import type { DataEvent, Envelope, ErrorInfo, InteractionRequestedEvent, KnownEvent } from "../generated.js";
import { Kept } from "./kept.js";
import type { InteractionPart, Part, TextPart, ThinkingPart, ToolPart } from "./parts.js";
import { applyPatch } from "./patch.js";
import { continues } from "./texts.js";

/** What all parts have, as an event says it. */
interface Place {
  id: string;
  startedAt: number;
  stepId?: string;
  subagentId?: string;
}

/** Gives a part its id and its place; one id is given once. */
type Placing = (id: string) => Place;

type Said = Extract<KnownEvent, { type: `text.${string}` | `thinking.${string}` }>;

/** The parts of a run. A part is replaced when it changes, so that a snapshot stays what it was. */
export class PartList {
  readonly #parts = new Kept<Part>();
  /** Where the newest part of a name is. */
  readonly #places = new Map<string, number>();
  readonly #openCalls = new Set<string>();

  /** Makes what gives the parts of an event their place. */
  place(event: Envelope, at: number): Placing {
    return (id) => ({
      id: this.#places.has(id) ? `${id} ${event.seq}.${this.#parts.length}` : id,
      startedAt: at,
      ...(event.step_id !== undefined && { stepId: event.step_id }),
      ...(event.subagent_run_id !== undefined && { subagentId: event.subagent_run_id }),
    });
  }

  /** Adds a part; it is then found by its name: its id, or what it was called before others had that name. */
  add(part: Part, name = part.id): void {
    this.#places.set(part.id, this.#parts.length);
    this.#places.set(name, this.#parts.length);
    if (part.kind === "tool") this.#openCalls.add(part.callId);
    this.#parts.push(part);
  }

  snapshot(): readonly Part[] {
    return this.#parts.snapshot();
  }

  findLast(is: (part: Part) => boolean): Part | undefined {
    return this.#parts.findLast(is);
  }

  call(id: string): ToolPart | undefined {
    const part = this.#find(`call ${id}`);
    return part?.kind === "tool" ? part : undefined;
  }

  /** Tells the tool at work, where there is only one. */
  onlyTool(): string | undefined {
    const [id, another] = this.#openCalls;
    return id !== undefined && another === undefined ? this.call(id)?.name : undefined;
  }

  editCall(id: string, change: (call: ToolPart) => Partial<ToolPart>): void {
    const call = this.call(id);
    if (call === undefined) return;
    const changed = change(call);
    // A change that names the part is the whole part: it may leave fields out.
    const part: ToolPart = changed.id === undefined ? { ...call, ...changed } : (changed as ToolPart);
    if (part.endedAt !== undefined) this.#openCalls.delete(id);
    this.#put(`call ${id}`, part);
  }

  edit(kind: "interaction", id: string, change: (part: InteractionPart) => Partial<InteractionPart>): void {
    const name = `${kind} ${id}`;
    const part = this.#find(name);
    if (part?.kind === kind) this.#put(name, { ...part, ...change(part) });
  }

  takeText(event: Said, at: number): void {
    const isText = event.type.startsWith("text.");
    const name = `${isText ? "text" : "thinking"} ${event.message_id}`;
    if (event.type === "text.started") {
      if (this.#continueLast(event, name)) return;
      const role = event.role === undefined || event.role === "assistant" ? {} : { role: event.role };
      const place = this.place(event, at)(name);
      if (event.role === "user") this.add({ kind: "user", ...place, text: "" }, name);
      else this.add({ kind: "text", ...place, messageId: event.message_id, text: "", ...role }, name);
      return;
    }
    if (event.type === "thinking.started") {
      const stage = event.stage === undefined ? {} : { stage: event.stage };
      return this.add({ kind: "thinking", ...this.place(event, at)(name), messageId: event.message_id, text: "", ...stage }, name);
    }
    const part = this.#find(name);
    if (part?.kind !== "text" && part?.kind !== "thinking" && part?.kind !== "user") return;
    switch (event.type) {
      case "text.delta":
        return this.#put(name, { ...part, text: part.text + event.content, ...(event.format !== undefined && { format: event.format }) } as TextPart);
      case "thinking.delta":
        return this.#put(name, { ...part, text: part.text + event.content, ...(event.stage !== undefined && { stage: event.stage }) } as ThinkingPart);
      case "thinking.finished":
        return this.#put(name, { ...part, endedAt: at, text: event.content ?? part.text });
      case "text.finished":
        return this.#put(name, {
          ...part,
          endedAt: at,
          text: event.content ?? part.text,
          ...(event.status !== undefined && { status: event.status }),
          ...(event.result_type !== undefined && { resultType: event.result_type }),
          ...(event.key_points !== undefined && { keyPoints: event.key_points }),
          ...(event.suggested_actions !== undefined && { suggestedActions: event.suggested_actions }),
          ...(event.ui_schema !== undefined && { uiSchema: event.ui_schema }),
          ...(event.error !== undefined && { error: event.error }),
        } as TextPart);
    }
  }

  /** Goes on with the last part, where a text continues it: what is one message to a reader is one part. */
  #continueLast(event: Extract<Said, { type: "text.started" }>, name: string): boolean {
    const last = this.#parts.at(-1);
    if (last?.kind !== "text" || last.endedAt === undefined || last.role !== undefined) return false;
    if (last.subagentId !== undefined || event.subagent_run_id !== undefined || !continues(last.messageId, event.message_id)) return false;
    const { endedAt: _, ...open } = last;
    this.#places.set(name, this.#parts.length - 1);
    this.#put(name, open);
    return true;
  }

  takeData(event: DataEvent, place: Place & { endedAt: number }): void {
    const { data_type, data, metadata, call_id } = event;
    this.add({
      kind: "data",
      ...place,
      dataType: data_type,
      data,
      ...(metadata !== undefined && { metadata }),
      ...(call_id !== undefined && { callId: call_id }),
    });
  }

  takeQuestion(event: InteractionRequestedEvent, place: Place): void {
    const { interaction_id, kind, title, description, schema, ui, call_id, name, reason, expires_at } = event;
    const part: InteractionPart = {
      kind: "interaction",
      ...place,
      interactionId: interaction_id,
      interactionKind: kind,
      status: "open",
      ...(title !== undefined && { title }),
      ...(description !== undefined && { description }),
      ...(schema !== undefined && { schema }),
      ...(ui !== undefined && { ui }),
      ...(call_id !== undefined && { callId: call_id }),
      ...(name !== undefined && { name }),
      ...(event.arguments !== undefined && { arguments: event.arguments }),
      ...(reason !== undefined && { reason }),
      ...(expires_at !== undefined && { expiresAt: expires_at }),
    };
    this.add(part, `interaction ${interaction_id}`);
  }

  /** Adds why the run failed; a notice that said the same just before is marked. */
  fail(error: ErrorInfo, place: Place & { endedAt: number }): void {
    const said = this.#parts.findLastIndex((part) => part.kind === "notice" && part.message === error.message);
    const notice = said === -1 ? undefined : this.#parts.at(said);
    if (notice?.kind === "notice") this.#parts.put(said, { ...notice, isRepeated: true });
    this.add({ kind: "error", ...place, error });
  }

  /** Takes what is shown as it comes. */
  takeOther(event: KnownEvent, at: number, place: Placing): void {
    switch (event.type) {
      case "notice": {
        const { level, message, code, domain, kind, retryable, fatal, details } = event;
        return this.add({
          kind: "notice",
          ...place("notice"),
          endedAt: at,
          level,
          message,
          ...(code !== undefined && { code }),
          ...(domain !== undefined && { domain }),
          ...(kind !== undefined && { errorKind: kind }),
          ...(retryable !== undefined && { retryable }),
          ...(fatal !== undefined && { fatal }),
          ...(details !== undefined && { details }),
        });
      }
      case "subagent.started":
        return this.add({ kind: "subagent", ...place(subagent(event)), status: "running", ...(event.name !== undefined && { name: event.name }) }, subagent(event));
      case "subagent.finished":
      case "subagent.failed": {
        const part = this.#find(subagent(event));
        if (part?.kind !== "subagent") return;
        if (event.type === "subagent.finished") {
          return this.#put(subagent(event), { ...part, status: "completed", endedAt: at, ...(event.result !== undefined && { result: event.result }) });
        }
        const error = { message: event.message, ...(event.code !== undefined && { code: event.code }) };
        return this.#put(subagent(event), { ...part, status: "failed", endedAt: at, error });
      }
      case "activity.snapshot": {
        const name = `activity ${event.message_id}`;
        const shown = { messageId: event.message_id, activityType: event.activity_type, content: event.content };
        const part = this.#find(name);
        if (part?.kind !== "activity") return this.add({ kind: "activity", ...place(name), ...shown }, name);
        // Without `replace`, what is shown already stays.
        if (event.replace !== false) this.#put(name, { ...part, ...shown });
        return;
      }
      case "activity.patched": {
        const name = `activity ${event.message_id}`;
        const part = this.#find(name);
        if (part?.kind === "activity") this.#put(name, { ...part, content: applyPatch(part.content, event.patch) });
        return;
      }
      case "custom":
        return this.add({ kind: "custom", ...place("custom"), endedAt: at, value: event.value, ...(event.name !== undefined && { name: event.name }) });
      case "foreign":
        return this.add({ kind: "custom", ...place("custom"), endedAt: at, value: event.frame, dialect: event.dialect, ...(event.name !== undefined && { name: event.name }) });
      default:
        return this.add({ kind: "custom", ...place("custom"), endedAt: at, name: event.type, value: event });
    }
  }

  /** Closes what the end of the run leaves open. */
  close(at: number): void {
    for (const id of [...this.#openCalls]) {
      // A call without a result may be answered in the next run.
      this.editCall(id, () => ({ status: "abandoned", endedAt: at }));
    }
  }

  #find(name: string): Part | undefined {
    const place = this.#places.get(name);
    return place === undefined ? undefined : this.#parts.at(place);
  }

  #put(name: string, part: Part): void {
    const place = this.#places.get(name);
    if (place !== undefined) this.#parts.put(place, part);
  }
}

function subagent(event: Envelope): string {
  return `subagent ${event.subagent_run_id ?? ""}`;
}
