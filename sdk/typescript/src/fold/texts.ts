interface Text {
  id: string;
  content: string;
  /** Whether it is part of what is joined. */
  isShown: boolean;
}

/** Texts of a run, joined with a blank line between them. */
export class Texts {
  readonly #texts: Text[] = [];
  /** Where the newest text of an id is. */
  readonly #places = new Map<string, number>();
  #joined: string | undefined = "";

  start(id: string, isShown = true): void {
    this.#places.set(id, this.#texts.length);
    this.#texts.push({ id, content: "", isShown });
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
    this.#joined ??= this.#texts.filter((text) => text.isShown && text.content !== "").map((text) => text.content).join("\n\n");
    return this.#joined;
  }
}
