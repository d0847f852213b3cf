import { ProtocolError } from "../errors.js";

/** Maximum number of characters of one event; a snapshot of a long conversation is one event. */
export const MAX_EVENT_LENGTH = 64 * 1024 * 1024;

/** An event of an SSE stream, or a comment between two blank lines. */
export interface SseEvent {
  /** The cursor after this event. */
  id: string | undefined;
  /** The `event` field: the frame's name. */
  name: string | undefined;
  /** The data; undefined in a keep-alive. */
  data: string | undefined;
  /** Delay before reconnecting, in milliseconds; sent by a server that is stopping. */
  retry: number | undefined;
  /** Whether all stored events have been sent. */
  isCaughtUp: boolean;
  /** Whether the run has ended and all its events have been sent. */
  isEnd: boolean;
}

const CURSOR = /^\d{1,20}(-\d{1,20})?$/;

/**
 * Incremental parser of server-sent events. An event that the end of the connection truncates is never returned.
 *
 * Parsers made for `EventSource` drop events without data, and with them the cursor of an idle stream.
 */
export class SseParser {
  /** Received text; `#offset` is where the next line begins. */
  #text = "";
  #offset = 0;
  /** Chunks of a line whose end has not arrived. */
  #partialLine: string[] = [];
  #event = emptyEvent();
  /** Characters of the current event. */
  #length = 0;

  /** Appends received text. */
  push(text: string): void {
    if (this.#offset < this.#text.length) this.#partialLine.push(this.#text.slice(this.#offset));
    this.#offset = 0;
    this.#text = "";
    this.#addLength(text.length);
    // Chunks of a long line are joined once, when its end has arrived.
    if (this.#partialLine.length > 0 && !text.includes("\n")) this.#partialLine.push(text);
    else if (this.#partialLine.length > 0) {
      this.#partialLine.push(text);
      this.#text = this.#partialLine.join("");
      this.#partialLine = [];
    } else this.#text = text;
  }

  /** Returns the next complete event, if there is one. */
  next(): SseEvent | undefined {
    for (;;) {
      const end = this.#text.indexOf("\n", this.#offset);
      if (end === -1) return undefined;
      const start = this.#offset;
      this.#offset = end + 1;
      const lineEnd = end > start && this.#text.charCodeAt(end - 1) === 13 ? end - 1 : end;
      if (lineEnd > start) {
        parseLine(this.#event, this.#text.slice(start, lineEnd));
        continue;
      }
      const event = this.#event;
      this.#event = emptyEvent();
      this.#length = this.#text.length - this.#offset;
      return event;
    }
  }

  #addLength(length: number): void {
    this.#length += length;
    if (this.#length > MAX_EVENT_LENGTH) throw new ProtocolError(`an event has more than ${MAX_EVENT_LENGTH} characters`);
  }
}

function emptyEvent(): SseEvent {
  return { id: undefined, name: undefined, data: undefined, retry: undefined, isCaughtUp: false, isEnd: false };
}

function parseLine(event: SseEvent, line: string): void {
  const colon = line.indexOf(":");
  const field = colon === -1 ? line : line.slice(0, colon);
  let from = colon === -1 ? line.length : colon + 1;
  if (line.charCodeAt(from) === 32) from++;
  const value = line.slice(from);
  switch (field) {
    case "id":
      if (value === "") return;
      if (!CURSOR.test(value)) throw new ProtocolError("an event's id is no cursor");
      event.id = value;
      return;
    case "event":
      event.name = value === "" ? undefined : value;
      return;
    case "data":
      event.data = event.data === undefined ? value : `${event.data}\n${value}`;
      return;
    case "retry":
      if (/^\d{1,9}$/.test(value)) event.retry = Number(value);
      return;
    case "":
      if (value === "caught-up") event.isCaughtUp = true;
      else if (value === "end") event.isEnd = true;
  }
}
