import type { StreamingEngine } from "../dialects/index.js";
import type { CaughtUp, RunwireEvent } from "../events.js";
import type { MessageState } from "../generated.js";
import type { LegacyFrame } from "./legacy.js";
import { MessageFold } from "./message.js";
import { StreamingEngineReader } from "./streaming-engine.js";

/** A frame whose metadata may be incomplete, as in the document's own examples. */
type AsDocumented<F> = F extends { metadata: infer M } ? Omit<F, "metadata"> & { metadata?: Partial<M> } : never;

/** What `MessageStreamHandler` takes; `type` tells which frame it is. */
export type HandledEvent = AsDocumented<StreamingEngine.Frame> | LegacyFrame | RunwireEvent | CaughtUp;

/**
 * Gathers the frames of one run into a message, as StreamingEngine's front end does (§3 of its document).
 *
 * It takes frames of `runwire` and of `streaming-engine`, the older ones too; of any other dialect, the server is
 * asked for `runwire`. Frames of another run than the first are passed over.
 */
export class MessageStreamHandler {
  readonly #fold = new MessageFold();
  readonly #reader = new StreamingEngineReader();
  #at = 0;
  /** Whether frames of StreamingEngine came. */
  #hasRead = false;

  /** The message so far: the same object until it changes. */
  get message(): MessageState {
    return this.#fold.snapshot();
  }

  /** Takes in the next frame. Unknown types and the marker of a stream that has caught up change nothing. */
  handleEvent(event: HandledEvent): void {
    if (event.type === "caught-up") return;
    const frame = event as unknown as Record<string, unknown>;
    if (isCanonical(frame)) {
      if (this.#fold.runId === "") this.#fold.runId = frame.run_id;
      if (frame.run_id === this.#fold.runId) this.#fold.apply(frame, Date.parse(frame.at));
      return;
    }
    const told = millisOf((frame["metadata"] as Record<string, unknown> | null | undefined)?.["timestamp"]);
    // Time does not go backwards, and frames without a time happened when the last one did.
    if (told !== undefined && told > this.#at) this.#at = told;
    this.#hasRead = true;
    const events = this.#reader.read(frame);
    if (this.#fold.runId !== this.#reader.runId) this.#fold.runId = this.#reader.runId;
    for (const each of events) this.#fold.apply(each as unknown as RunwireEvent, this.#at);
  }

  /** Says that the stream has ended; a run that did not end has failed. Only StreamingEngine's own streams need it. */
  handleEnd(): void {
    if (!this.#hasRead) return;
    for (const each of this.#reader.end()) this.#fold.apply(each as unknown as RunwireEvent, this.#at);
  }
}

/** Reads a time in milliseconds, or in seconds, which have ten digits before the point. */
function millisOf(time: unknown): number | undefined {
  if (typeof time !== "number") return undefined;
  return time >= 1e9 && time < 1e10 ? Math.round(time * 1000) : time;
}

function isCanonical(frame: Record<string, unknown>): frame is RunwireEvent & Record<string, unknown> {
  return typeof frame["run_id"] === "string" && typeof frame["at"] === "string" && typeof frame["seq"] === "number";
}
