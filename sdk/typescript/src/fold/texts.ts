interface Text {
  id: string;
  content: string;
  /** Whether it is part of what is joined. */
  isShown: boolean;
  /** Whether it continues the text before it. */
  continues: boolean;
  /** Whether another text may continue it: it has ended, and is neither a thought nor what a subagent says. */
  isContinuable: boolean;
}

/** Tells whether a message continues the one before it: `m1#2` after `m1`, `m1#3` after `m1#2`. */
export function continues(previous: string, id: string): boolean {
  const base = continued(id);
  return base !== undefined && (previous === base || continued(previous) === base);
}

function continued(id: string): string | undefined {
  const [, base, number] = /^(.*)#(\d+)$/s.exec(id) ?? [];
  return Number(number) >= 2 ? base : undefined;
}

/** Texts of a run, joined: with a blank line between two messages, and with nothing between a message and its continuation. */
export class Texts {
  readonly #texts: Text[] = [];
  /** Where the newest text of an id is. */
  readonly #places = new Map<string, number>();
  #joined: string | undefined = "";

  start(id: string, isShown = true, isApart = false): void {
    const before = this.#texts.findLast((text) => text.isShown && text.content !== "");
    const goesOn = !isApart && before?.isContinuable === true && continues(before.id, id);
    this.#places.set(id, this.#texts.length);
    this.#texts.push({ id, content: "", isShown, continues: goesOn, isContinuable: false });
  }

  /** Ends a text; another one may continue it, unless it stands apart. */
  finish(id: string, isApart = false): void {
    const text = this.#texts[this.#places.get(id) ?? -1];
    if (text !== undefined) text.isContinuable = !isApart;
  }

  add(id: string, content: string): void {
    const place = this.#places.get(id);
    const text = place === undefined ? undefined : this.#texts[place];
    if (place === undefined || text === undefined) return;
    const goesOn = text.content !== "" && text.isShown && place === this.#texts.length - 1;
    text.content += content;
    // Most pieces go on with the last text, which ends what was joined before.
    this.#joined = goesOn && this.#joined !== undefined ? this.#joined + content : undefined;
  }

  replace(id: string, content: string): void {
    const place = this.#places.get(id);
    const text = place === undefined ? undefined : this.#texts[place];
    if (text !== undefined) text.content = content;
    this.#joined = undefined;
  }

  /** Gives all texts. */
  get joined(): string {
    this.#joined ??= this.#join();
    return this.#joined;
  }

  #join(): string {
    let joined = "";
    for (const text of this.#texts) {
      if (text.isShown && text.content !== "") joined += (joined === "" || text.continues ? "" : "\n\n") + text.content;
    }
    return joined;
  }
}
