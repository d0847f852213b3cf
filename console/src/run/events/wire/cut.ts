/** A frame as it is on the wire, with everything around it. */
export interface Piece {
  /** Where the stream goes on after it; a comment has none. */
  cursor?: string;
  /** Exactly what the server sent. */
  text: string;
  /** Whether it says that the run is over. */
  isEnd?: boolean;
  /** Whether it holds no frame: a comment, a sign of life. */
  isBare?: boolean;
}

/** Cuts text wherever a mark stands, and keeps what has no end yet. */
class Cut {
  readonly #mark: string;
  #rest: string[] = [];

  constructor(mark: string) {
    this.#mark = mark;
  }

  push(text: string): string[] {
    const whole: string[] = [];
    // The mark may be cut in two by the network, so the last character that came before is looked at again.
    const last = this.#rest.pop() ?? "";
    const joined = last + text;
    let from = 0;
    let end = joined.indexOf(this.#mark, Math.max(0, last.length - this.#mark.length + 1));
    while (end !== -1) {
      whole.push([...this.#rest, joined.slice(from, end + this.#mark.length)].join(""));
      this.#rest = [];
      from = end + this.#mark.length;
      end = joined.indexOf(this.#mark, from);
    }
    const left = joined.slice(from);
    const split = left.length - this.#mark.length + 1;
    if (split > 0) this.#rest.push(left.slice(0, split));
    this.#rest.push(left.slice(Math.max(0, split)));
    return whole;
  }
}

/** Cuts a stream of server-sent events into its blocks. */
export function sseCutter(): (text: string) => Piece[] {
  const cut = new Cut("\n\n");
  return (text) =>
    cut.push(text).map((block) => {
      const cursor = /^id: ?(.+)$/m.exec(block)?.[1];
      const isBare = !/^data:/m.test(block);
      return { text: block.replace(/\n$/, ""), isBare, isEnd: /^: ?end$/m.test(block), ...(cursor !== undefined && { cursor }) };
    });
}

/** Cuts NDJSON into lines, and takes off the wrapping that carries the cursor: what is left is a plain reader's line. */
export function ndjsonCutter(): (text: string) => Piece[] {
  const cut = new Cut("\n");
  return (text) =>
    cut.push(text).flatMap((line): Piece[] => {
      const wrapped = /^\{"cursor":"([^"]*)","frame":(.*)\}\n$/s.exec(line);
      if (wrapped !== null) return [{ cursor: wrapped[1] ?? "", text: `${wrapped[2] ?? ""}\n` }];
      // A blank line is a sign of life.
      return line === "\n" ? [] : [{ text: line, isBare: true }];
    });
}

/** Reads a message of the WebSocket. */
export function socketPiece(message: string): Piece {
  const [, op, cursor] = /^\{"op":"(\w+)","id":"1"(?:,"cursor":"([^"]*)")?/.exec(message) ?? [];
  return { text: message, isBare: op !== "frame", isEnd: op === "end", ...(cursor !== undefined && { cursor }) };
}
