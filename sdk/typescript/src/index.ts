export { Runwire } from "./client.js";
export { type FieldError, NetworkError, type Problem, ProblemError, ProtocolError, RunwireError, isRetryable } from "./errors.js";
export {
  type CaughtUp,
  cursorOf,
  type Dialect,
  DIALECTS,
  type EventOf,
  type EventType,
  isCaughtUp,
  isClosed,
  isTerminal,
  isUnknown,
  nameOf,
  type RunwireEvent,
  type TextChunk,
  type UnknownEvent,
} from "./events.js";
export type * from "./generated.js";
export { EVENT_TYPES } from "./generated.js";
export type { ClientOptions, RetryOptions, Token } from "./http.js";
export type * from "./resources/types.js";
export { RunStream, type Slots, type StreamOptions, type StreamStatus } from "./stream/run-stream.js";
export { type HandledEvent, MessageStreamHandler } from "./fold/message-stream-handler.js";
export type { LegacyFrame } from "./fold/legacy.js";
export { MessageFold } from "./fold/message-fold.js";
export type { CurrentOperation } from "./fold/current-operation.js";
export type * from "./fold/part-types.js";
export { applyPatch } from "./fold/patch.js";
export type { GotEdge, GotGraph, GotNode, TotNode, TotTree } from "./fold/thoughts.js";
export type { RunViewUsage, UsageCall } from "./fold/usage.js";
export { RunView, type RunStep, type RunViewCounts, type RunViewSnapshot, type StateChange } from "./fold/run-view.js";
