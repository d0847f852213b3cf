/** A frame on the wire with its framing. */
export interface WireFrame {
  /** Cursor after the frame; undefined for a comment. */
  cursor?: string;
  /** Text as the server sent it. */
  text: string;
  /** Whether it marks the end of the run. */
  isEnd?: boolean;
  /** Whether it carries no frame: a comment or a keep-alive. */
  isControl?: boolean;
}

/** Splits streamed text at a delimiter and buffers the incomplete rest. */
class DelimiterSplitter {
  readonly #delimiter: string;
  #buffer: string[] = [];

  constructor(delimiter: string) {
    this.#delimiter = delimiter;
  }

  push(text: string): string[] {
    const complete: string[] = [];
    // The delimiter may be split between two chunks, so the end of the last chunk is searched again.
    const last = this.#buffer.pop() ?? "";
    const joined = last + text;
    let from = 0;
    let end = joined.indexOf(this.#delimiter, Math.max(0, last.length - this.#delimiter.length + 1));
    while (end !== -1) {
      complete.push([...this.#buffer, joined.slice(from, end + this.#delimiter.length)].join(""));
      this.#buffer = [];
      from = end + this.#delimiter.length;
      end = joined.indexOf(this.#delimiter, from);
    }
    const rest = joined.slice(from);
    const split = rest.length - this.#delimiter.length + 1;
    if (split > 0) this.#buffer.push(rest.slice(0, split));
    this.#buffer.push(rest.slice(Math.max(0, split)));
    return complete;
  }
}

/** Splits a stream of server-sent events into its blocks. */
export function sseSplitter(): (text: string) => WireFrame[] {
  const splitter = new DelimiterSplitter("\n\n");
  return (text) =>
    splitter.push(text).map((block) => {
      const cursor = /^id: ?(.+)$/m.exec(block)?.[1];
      const isControl = !/^data:/m.test(block);
      return { text: block.replace(/\n$/, ""), isControl, isEnd: /^: ?end$/m.test(block), ...(cursor !== undefined && { cursor }) };
    });
}

/** Splits NDJSON into lines and removes the wrapper with the cursor. */
export function ndjsonSplitter(): (text: string) => WireFrame[] {
  const splitter = new DelimiterSplitter("\n");
  return (text) =>
    splitter.push(text).flatMap((line): WireFrame[] => {
      const wrapped = /^\{"cursor":"([^"]*)","frame":(.*)\}\n$/s.exec(line);
      if (wrapped !== null) return [{ cursor: wrapped[1] ?? "", text: `${wrapped[2] ?? ""}\n` }];
      // A blank line is a keep-alive.
      return line === "\n" ? [] : [{ text: line, isControl: true }];
    });
}

/** Parses a message of the WebSocket. */
export function parseSocketMessage(message: string): WireFrame {
  const [, op, cursor] = /^\{"op":"(\w+)","id":"1"(?:,"cursor":"([^"]*)")?/.exec(message) ?? [];
  return { text: message, isControl: op !== "frame", isEnd: op === "end", ...(cursor !== undefined && { cursor }) };
}
