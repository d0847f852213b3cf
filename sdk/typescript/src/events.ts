import { type DialectFrames, FRAME_DIALECTS } from "./dialects/index.js";
import { type Envelope, EVENT_TYPES, type KnownEvent, type RunStatus } from "./generated.js";

/** Event types that this version knows. */
export type EventType = KnownEvent["type"];

/** An event of a type that this version does not know, unchanged. */
export interface UnknownEvent extends Envelope {
  /** None of the known types. */
  type: string;
  [field: string]: unknown;
}

/**
 * An event of the `runwire` dialect, discriminated by `type`.
 *
 * A newer server may send other types: they are yielded unchanged, and `isUnknown` detects them.
 */
export type RunwireEvent = KnownEvent;

/** Marks that all stored events have been yielded; live events follow. */
export interface CaughtUp {
  type: "caught-up";
}

/** A chunk of the response text, in the dialect `text`. */
export interface TextChunk {
  type: "text";
  content: string;
}

/** Event types by dialect. */
interface EventsByDialect extends DialectFrames {
  runwire: RunwireEvent;
  text: TextChunk;
}

/** Dialects that a stream can be read in. */
export type Dialect = keyof EventsByDialect;

/** All dialects that a stream can be read in. */
export const DIALECTS: readonly Dialect[] = ["runwire", ...FRAME_DIALECTS, "text"];

/** The events of a stream in dialect `D`. */
export type EventOf<D extends Dialect> = EventsByDialect[D];

/** Returns true if the item is the caught-up marker of a stream. */
export function isCaughtUp(event: object): event is CaughtUp {
  return MARKERS.has(event);
}

/** Returns true if this version does not know the event's type. */
export function isUnknown(event: { type: string }): event is UnknownEvent {
  return !isCaughtUp(event) && !(EVENT_TYPES as readonly string[]).includes(event.type);
}

/** Returns true if the event ends its run. */
export function isTerminal(event: { type: string }): boolean {
  return event.type === "run.completed" || event.type === "run.failed" || event.type === "run.cancelled";
}

/** Returns true if a run with this status has ended. */
export function isClosed(status: RunStatus): boolean {
  return status === "completed" || status === "failed" || status === "cancelled";
}

interface Origin {
  cursor: string | undefined;
  name: string | undefined;
}

const ORIGINS = new WeakMap<object, Origin>();
const MARKERS = new WeakSet<object>();

/** Returns the cursor after an event, to resume from. Only the last event of a snapshot has one. */
export function cursorOf(event: object): string | undefined {
  return ORIGINS.get(event)?.cursor;
}

/** Returns the name of an event: the `event` field of SSE. */
export function nameOf(event: object): string | undefined {
  return ORIGINS.get(event)?.name;
}

/** Stores the cursor and the name of an event. */
export function setOrigin<E extends object>(event: E, cursor: string | undefined, name: string | undefined): E {
  ORIGINS.set(event, { cursor, name });
  return event;
}

/** Creates the caught-up marker at a cursor. */
export function caughtUpMarker(cursor: string | undefined): CaughtUp {
  const marker: CaughtUp = { type: "caught-up" };
  MARKERS.add(marker);
  return setOrigin(marker, cursor, undefined);
}
