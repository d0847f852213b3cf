import { ProtocolError } from "../errors.js";

/** Characters of one event; a snapshot of a long conversation is one. */
export const EVENT_CHARACTERS = 64 * 1024 * 1024;

/** What stands between two blank lines of a stream of server-sent events. */
export interface Block {
  /** The cursor after this event. */
  id: string | undefined;
  /** The frame's name. */
  name: string | undefined;
  /** The data; nothing in a sign of life. */
  data: string | undefined;
  /** How long to wait before connecting again, in milliseconds: the server is about to leave. */
  retry: number | undefined;
  /** Whether everything up to now has been sent. */
  isCaughtUp: boolean;
  /** Whether the run has ended and everything of it was sent. */
  isEnd: boolean;
}

const CURSOR = /^\d{1,20}(-\d{1,20})?$/;

/**
 * Cuts the text of a stream into events. What the end of a connection cuts off is never handed out.
 *
 * Parsers made for `EventSource` drop events without data, and the cursor of an idle stream with them.
 */
export class Cutter {
  /** What has come and was not read; begins with the line that is being read. */
  #text = "";
  #at = 0;
  /** Pieces of a line that has no end yet. */
  #pieces: string[] = [];
  #block = empty();
  /** Characters of the event that is being read. */
  #size = 0;

  /** Adds text of the stream. */
  push(text: string): void {
    if (this.#at < this.#text.length) this.#pieces.push(this.#text.slice(this.#at));
    this.#at = 0;
    this.#text = "";
    this.#grow(text.length);
    // A long line is put together once, when its end has come.
    if (this.#pieces.length > 0 && !text.includes("\n")) this.#pieces.push(text);
    else if (this.#pieces.length > 0) {
      this.#pieces.push(text);
      this.#text = this.#pieces.join("");
      this.#pieces = [];
    } else this.#text = text;
  }

  /** Takes the next event that is whole. */
  next(): Block | undefined {
    for (;;) {
      const end = this.#text.indexOf("\n", this.#at);
      if (end === -1) return undefined;
      const start = this.#at;
      this.#at = end + 1;
      const lineEnd = end > start && this.#text.charCodeAt(end - 1) === 13 ? end - 1 : end;
      if (lineEnd > start) {
        read(this.#block, this.#text.slice(start, lineEnd));
        continue;
      }
      const block = this.#block;
      this.#block = empty();
      this.#size = this.#text.length - this.#at;
      return block;
    }
  }

  #grow(length: number): void {
    this.#size += length;
    if (this.#size > EVENT_CHARACTERS) throw new ProtocolError(`an event has more than ${EVENT_CHARACTERS} characters`);
  }
}

function empty(): Block {
  return { id: undefined, name: undefined, data: undefined, retry: undefined, isCaughtUp: false, isEnd: false };
}

function read(block: Block, line: string): void {
  const colon = line.indexOf(":");
  const field = colon === -1 ? line : line.slice(0, colon);
  let from = colon === -1 ? line.length : colon + 1;
  if (line.charCodeAt(from) === 32) from++;
  const value = line.slice(from);
  switch (field) {
    case "id":
      if (value === "") return;
      if (!CURSOR.test(value)) throw new ProtocolError("an event's id is no cursor");
      block.id = value;
      return;
    case "event":
      block.name = value === "" ? undefined : value;
      return;
    case "data":
      block.data = block.data === undefined ? value : `${block.data}\n${value}`;
      return;
    case "retry":
      if (/^\d{1,9}$/.test(value)) block.retry = Number(value);
      return;
    case "":
      if (value === "caught-up") block.isCaughtUp = true;
      else if (value === "end") block.isEnd = true;
  }
}
