import type { DataEvent, Envelope, ErrorInfo, InteractionRequestedEvent, KnownEvent } from "../generated.js";
import { SnapshotList } from "./snapshot-list.js";
import type { InteractionPart, Part, PartBase, TextPart, ThinkingPart, ToolPart } from "./part-types.js";
import { applyPatch } from "./patch.js";
import { continues } from "./joined-texts.js";

/** Creates the base fields of a part of an event; makes the id unique. */
export type BaseFactory = (id: string) => PartBase;

type TextEvent = Extract<KnownEvent, { type: `text.${string}` | `thinking.${string}` }>;

/** The parts of a run. Parts are immutable: a change replaces the part, so that snapshots stay valid. */
export class PartList {
  readonly #parts = new SnapshotList<Part>();
  /** Index of the newest part of each key. */
  readonly #indexes = new Map<string, number>();
  readonly #openCalls = new Set<string>();

  /** Returns the factory of base fields for the parts of an event. */
  baseFor(event: Envelope, at: number): BaseFactory {
    return (id) => ({
      id: this.#indexes.has(id) ? `${id} ${event.seq}.${this.#parts.length}` : id,
      startedAt: at,
      ...(event.step_id !== undefined && { stepId: event.step_id }),
      ...(event.subagent_run_id !== undefined && { subagentId: event.subagent_run_id }),
    });
  }

  /** Adds a part and indexes it by its id and by `key`, which a later part may reuse. */
  add(part: Part, key = part.id): void {
    this.#indexes.set(part.id, this.#parts.length);
    this.#indexes.set(key, this.#parts.length);
    if (part.kind === "tool") this.#openCalls.add(part.callId);
    this.#parts.push(part);
  }

  snapshot(): readonly Part[] {
    return this.#parts.snapshot();
  }

  findLast(predicate: (part: Part) => boolean): Part | undefined {
    return this.#parts.findLast(predicate);
  }

  call(id: string): ToolPart | undefined {
    const part = this.#find(`call ${id}`);
    return part?.kind === "tool" ? part : undefined;
  }

  /** Returns the name of the running tool, if exactly one runs. */
  onlyRunningTool(): string | undefined {
    const [id, another] = this.#openCalls;
    return id !== undefined && another === undefined ? this.call(id)?.name : undefined;
  }

  editCall(id: string, change: (call: ToolPart) => Partial<ToolPart>): void {
    const call = this.call(id);
    if (call === undefined) return;
    const changed = change(call);
    // A change with an id replaces the whole part, so that it can remove fields.
    const part: ToolPart = changed.id === undefined ? { ...call, ...changed } : (changed as ToolPart);
    if (part.endedAt !== undefined) this.#openCalls.delete(id);
    this.#replace(`call ${id}`, part);
  }

  edit(kind: "interaction", id: string, change: (part: InteractionPart) => Partial<InteractionPart>): void {
    const key = `${kind} ${id}`;
    const part = this.#find(key);
    if (part?.kind === kind) this.#replace(key, { ...part, ...change(part) });
  }

  applyText(event: TextEvent, at: number): void {
    const isText = event.type.startsWith("text.");
    const key = `${isText ? "text" : "thinking"} ${event.message_id}`;
    if (event.type === "text.started") {
      if (this.#continueLast(event, key)) return;
      const role = event.role === undefined || event.role === "assistant" ? {} : { role: event.role };
      const base = this.baseFor(event, at)(key);
      if (event.role === "user") this.add({ kind: "user", ...base, text: "" }, key);
      else this.add({ kind: "text", ...base, messageId: event.message_id, text: "", ...role }, key);
      return;
    }
    if (event.type === "thinking.started") {
      const stage = event.stage === undefined ? {} : { stage: event.stage };
      return this.add({ kind: "thinking", ...this.baseFor(event, at)(key), messageId: event.message_id, text: "", ...stage }, key);
    }
    const part = this.#find(key);
    if (part?.kind !== "text" && part?.kind !== "thinking" && part?.kind !== "user") return;
    switch (event.type) {
      case "text.delta":
        return this.#replace(key, { ...part, text: part.text + event.content, ...(event.format !== undefined && { format: event.format }) } as TextPart);
      case "thinking.delta":
        return this.#replace(key, { ...part, text: part.text + event.content, ...(event.stage !== undefined && { stage: event.stage }) } as ThinkingPart);
      case "thinking.finished":
        return this.#replace(key, { ...part, endedAt: at, text: event.content ?? part.text });
      case "text.finished":
        return this.#replace(key, {
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

  /** Reopens the last part if a text continues it: one message is one part. */
  #continueLast(event: Extract<TextEvent, { type: "text.started" }>, key: string): boolean {
    const last = this.#parts.at(-1);
    if (last?.kind !== "text" || last.endedAt === undefined || last.role !== undefined) return false;
    if (last.subagentId !== undefined || event.subagent_run_id !== undefined || !continues(last.messageId, event.message_id)) return false;
    const { endedAt: _, ...open } = last;
    this.#indexes.set(key, this.#parts.length - 1);
    this.#replace(key, open);
    return true;
  }

  addData(event: DataEvent, base: PartBase & { endedAt: number }): void {
    const { data_type, data, metadata, call_id } = event;
    this.add({
      kind: "data",
      ...base,
      dataType: data_type,
      data,
      ...(metadata !== undefined && { metadata }),
      ...(call_id !== undefined && { callId: call_id }),
    });
  }

  addInteraction(event: InteractionRequestedEvent, base: PartBase): void {
    const { interaction_id, kind, title, description, schema, ui, call_id, name, reason, expires_at } = event;
    const part: InteractionPart = {
      kind: "interaction",
      ...base,
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

  /** Adds the error of the run, and marks an earlier notice with the same message as repeated. */
  fail(error: ErrorInfo, base: PartBase & { endedAt: number }): void {
    const index = this.#parts.findLastIndex((part) => part.kind === "notice" && part.message === error.message);
    const notice = index === -1 ? undefined : this.#parts.at(index);
    if (notice?.kind === "notice") this.#parts.set(index, { ...notice, isRepeated: true });
    this.add({ kind: "error", ...base, error });
  }

  /** Applies notices, subagents, activities and custom events. */
  applyOther(event: KnownEvent, at: number, base: BaseFactory): void {
    switch (event.type) {
      case "notice": {
        const { level, message, code, domain, kind, retryable, fatal, details } = event;
        return this.add({
          kind: "notice",
          ...base("notice"),
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
        return this.add({ kind: "subagent", ...base(subagentKey(event)), status: "running", ...(event.name !== undefined && { name: event.name }) }, subagentKey(event));
      case "subagent.finished":
      case "subagent.failed": {
        const part = this.#find(subagentKey(event));
        if (part?.kind !== "subagent") return;
        if (event.type === "subagent.finished") {
          return this.#replace(subagentKey(event), { ...part, status: "completed", endedAt: at, ...(event.result !== undefined && { result: event.result }) });
        }
        const error = { message: event.message, ...(event.code !== undefined && { code: event.code }) };
        return this.#replace(subagentKey(event), { ...part, status: "failed", endedAt: at, error });
      }
      case "activity.snapshot": {
        const key = `activity ${event.message_id}`;
        const fields = { messageId: event.message_id, activityType: event.activity_type, content: event.content };
        const part = this.#find(key);
        if (part?.kind !== "activity") return this.add({ kind: "activity", ...base(key), ...fields }, key);
        // `replace: false` keeps the existing content.
        if (event.replace !== false) this.#replace(key, { ...part, ...fields });
        return;
      }
      case "activity.patched": {
        const key = `activity ${event.message_id}`;
        const part = this.#find(key);
        if (part?.kind === "activity") this.#replace(key, { ...part, content: applyPatch(part.content, event.patch) });
        return;
      }
      case "custom":
        return this.add({ kind: "custom", ...base("custom"), endedAt: at, value: event.value, ...(event.name !== undefined && { name: event.name }) });
      case "foreign":
        return this.add({ kind: "custom", ...base("custom"), endedAt: at, value: event.frame, dialect: event.dialect, ...(event.name !== undefined && { name: event.name }) });
      default:
        return this.add({ kind: "custom", ...base("custom"), endedAt: at, name: event.type, value: event });
    }
  }

  /** Marks open tool calls as abandoned when the run ends. */
  close(at: number): void {
    for (const id of [...this.#openCalls]) {
      // The next run may still return the result of the call.
      this.editCall(id, () => ({ status: "abandoned", endedAt: at }));
    }
  }

  #find(key: string): Part | undefined {
    const index = this.#indexes.get(key);
    return index === undefined ? undefined : this.#parts.at(index);
  }

  #replace(key: string, part: Part): void {
    const index = this.#indexes.get(key);
    if (index !== undefined) this.#parts.set(index, part);
  }
}

function subagentKey(event: Envelope): string {
  return `subagent ${event.subagent_run_id ?? ""}`;
}
