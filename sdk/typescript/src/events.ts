import type { DialectFrames } from "./dialects/index.js";
import { type Envelope, EVENT_TYPES, type KnownEvent, type RunStatus } from "./generated.js";

/** The types that this version knows. */
export type EventType = KnownEvent["type"];

/** An event of a type that this version has no name for, as it came. */
export interface UnknownEvent extends Envelope {
  /** Something else than the known types. */
  type: string;
  [field: string]: unknown;
}

/**
 * An event of the `runwire` dialect; `type` tells which.
 *
 * A newer server may send others: they are handed out as they came, and `isUnknown` tells them apart.
 */
export type RunwireEvent = KnownEvent;

/** Says that everything up to now has been handed out; what follows happens as it comes. */
export interface CaughtUp {
  type: "caught-up";
}

/** A piece of the answer's text, in the dialect `text`. */
export interface TextPiece {
  type: "text";
  content: string;
}

/** What a stream hands out, by its dialect. */
interface EventsOfDialects extends DialectFrames {
  runwire: RunwireEvent;
  text: TextPiece;
}

/** The dialects that can be asked for. */
export type Dialect = keyof EventsOfDialects;

/** What a stream in a dialect hands out. */
export type EventOf<D extends Dialect> = EventsOfDialects[D];

/** Tells whether something is the marker that everything up to now has been handed out. */
export function isCaughtUp(event: object): event is CaughtUp {
  return MARKERS.has(event);
}

/** Tells whether an event is of a type that this version has no name for. */
export function isUnknown(event: { type: string }): event is UnknownEvent {
  return !isCaughtUp(event) && !(EVENT_TYPES as readonly string[]).includes(event.type);
}

/** Tells whether an event ends its run. */
export function isTerminal(event: { type: string }): boolean {
  return event.type === "run.completed" || event.type === "run.failed" || event.type === "run.cancelled";
}

/** Tells whether nothing more can happen in a run. */
export function isClosed(status: RunStatus): boolean {
  return status === "completed" || status === "failed" || status === "cancelled";
}

interface Origin {
  cursor: string | undefined;
  name: string | undefined;
}

const ORIGINS = new WeakMap<object, Origin>();
const MARKERS = new WeakSet<object>();

/** Tells the place after an event: a stream can go on from it. Of a snapshot, only the last event has one. */
export function cursorOf(event: object): string | undefined {
  return ORIGINS.get(event)?.cursor;
}

/** Tells the name that SSE carried beside an event's data. */
export function nameOf(event: object): string | undefined {
  return ORIGINS.get(event)?.name;
}

/** Remembers where an event came from. */
export function remember<E extends object>(event: E, cursor: string | undefined, name: string | undefined): E {
  ORIGINS.set(event, { cursor, name });
  return event;
}

/** Makes the marker that everything up to a place has been handed out. */
export function caughtUpAt(cursor: string | undefined): CaughtUp {
  const marker: CaughtUp = { type: "caught-up" };
  MARKERS.add(marker);
  return remember(marker, cursor, undefined);
}
