import type { StreamingEngine } from "../dialects/index.js";
import type { CaughtUp, RunwireEvent } from "../events.js";
import type { MessageState } from "../generated.js";
import type { LegacyFrame } from "./legacy.js";
import { MessageFold } from "./message-fold.js";
import { StreamingEngineDecoder } from "./streaming-engine-decoder.js";

/** A frame with optional metadata fields, as in the examples of StreamingEngine's document. */
type WithPartialMetadata<F> = F extends { metadata: infer M } ? Omit<F, "metadata"> & { metadata?: Partial<M> } : never;

/** Input of `MessageStreamHandler`, discriminated by `type`. */
export type HandledEvent = WithPartialMetadata<StreamingEngine.Frame> | LegacyFrame | RunwireEvent | CaughtUp;

/**
 * Folds the frames of one run into a message, as StreamingEngine's front end does (§3 of its document).
 *
 * It accepts frames of `runwire` and `streaming-engine`, including legacy ones. Read other dialects as `runwire`.
 * Frames of other runs than the first are ignored.
 */
export class MessageStreamHandler {
  readonly #fold = new MessageFold();
  readonly #decoder = new StreamingEngineDecoder();
  #time = 0;
  /** Whether a StreamingEngine frame was handled. */
  #hasNativeFrames = false;

  /** The message so far: the same object until something changes. */
  get message(): MessageState {
    return this.#fold.snapshot();
  }

  /** Applies the next frame. Ignores unknown types and the caught-up marker. */
  handleEvent(event: HandledEvent): void {
    if (event.type === "caught-up") return;
    const frame = event as unknown as Record<string, unknown>;
    if (isCanonical(frame)) {
      if (this.#fold.runId === "") this.#fold.runId = frame.run_id;
      if (frame.run_id === this.#fold.runId) this.#fold.apply(frame, Date.parse(frame.at));
      return;
    }
    const timestamp = toMillis((frame["metadata"] as Record<string, unknown> | null | undefined)?.["timestamp"]);
    // Time is monotonic: a frame without a timestamp gets that of the frame before.
    if (timestamp !== undefined && timestamp > this.#time) this.#time = timestamp;
    this.#hasNativeFrames = true;
    const events = this.#decoder.decode(frame);
    if (this.#fold.runId !== this.#decoder.runId) this.#fold.runId = this.#decoder.runId;
    for (const each of events) this.#fold.apply(each as unknown as RunwireEvent, this.#time);
  }

  /** Ends the stream: a run that has not ended fails. Only needed for StreamingEngine's own streams. */
  handleEnd(): void {
    if (!this.#hasNativeFrames) return;
    for (const each of this.#decoder.end()) this.#fold.apply(each as unknown as RunwireEvent, this.#time);
  }
}

/** Converts a timestamp to milliseconds; one with ten integer digits is in seconds. */
function toMillis(timestamp: unknown): number | undefined {
  if (typeof timestamp !== "number") return undefined;
  return timestamp >= 1e9 && timestamp < 1e10 ? Math.round(timestamp * 1000) : timestamp;
}

function isCanonical(frame: Record<string, unknown>): frame is RunwireEvent & Record<string, unknown> {
  return typeof frame["run_id"] === "string" && typeof frame["at"] === "string" && typeof frame["seq"] === "number";
}
