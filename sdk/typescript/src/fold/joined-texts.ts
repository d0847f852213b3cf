interface Text {
  id: string;
  content: string;
  /** Whether it is included in the joined text. */
  isIncluded: boolean;
  /** Whether it continues the previous text. */
  continues: boolean;
  /** Whether another text may continue it: it has ended, and is neither thinking nor a text of a subagent. */
  isContinuable: boolean;
}

/** Returns true if a message continues the previous one: `m1#2` after `m1`, `m1#3` after `m1#2`. */
export function continues(previous: string, id: string): boolean {
  const base = baseId(id);
  return base !== undefined && (previous === base || baseId(previous) === base);
}

function baseId(id: string): string | undefined {
  const [, base, number] = /^(.*)#(\d+)$/s.exec(id) ?? [];
  return Number(number) >= 2 ? base : undefined;
}

/** The texts of a run, joined by blank lines; a continuation follows its message without a separator. */
export class JoinedTexts {
  readonly #texts: Text[] = [];
  /** Index of the newest text of each id. */
  readonly #indexes = new Map<string, number>();
  #joined: string | undefined = "";

  start(id: string, isIncluded = true, isSeparate = false): void {
    const before = this.#texts.findLast((text) => text.isIncluded && text.content !== "");
    const isContinuation = !isSeparate && before?.isContinuable === true && continues(before.id, id);
    this.#indexes.set(id, this.#texts.length);
    this.#texts.push({ id, content: "", isIncluded, continues: isContinuation, isContinuable: false });
  }

  /** Ends a text; another one may continue it, unless it is separate. */
  finish(id: string, isSeparate = false): void {
    const text = this.#texts[this.#indexes.get(id) ?? -1];
    if (text !== undefined) text.isContinuable = !isSeparate;
  }

  add(id: string, content: string): void {
    const index = this.#indexes.get(id);
    const text = index === undefined ? undefined : this.#texts[index];
    if (index === undefined || text === undefined) return;
    const extendsLast = text.content !== "" && text.isIncluded && index === this.#texts.length - 1;
    text.content += content;
    // Most deltas extend the last text, so that the joined text can be extended too.
    this.#joined = extendsLast && this.#joined !== undefined ? this.#joined + content : undefined;
  }

  replace(id: string, content: string): void {
    const index = this.#indexes.get(id);
    const text = index === undefined ? undefined : this.#texts[index];
    if (text !== undefined) text.content = content;
    this.#joined = undefined;
  }

  /** The joined text. */
  get joined(): string {
    this.#joined ??= this.#join();
    return this.#joined;
  }

  #join(): string {
    let joined = "";
    for (const text of this.#texts) {
      if (text.isIncluded && text.content !== "") joined += (joined === "" || text.continues ? "" : "\n\n") + text.content;
    }
    return joined;
  }
}
