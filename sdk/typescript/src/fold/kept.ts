/** A list whose snapshot stays the same array until the list changes. */
export class Kept<T> {
  readonly #items: T[] = [];
  #shown: readonly T[] | undefined;

  get length(): number {
    return this.#items.length;
  }

  at(place: number): T | undefined {
    return this.#items.at(place);
  }

  push(item: T): void {
    this.#items.push(item);
    this.#shown = undefined;
  }

  put(place: number, item: T): void {
    this.#items[place] = item;
    this.#shown = undefined;
  }

  findLast(is: (item: T) => boolean): T | undefined {
    return this.#items.findLast(is);
  }

  findLastIndex(is: (item: T) => boolean): number {
    return this.#items.findLastIndex(is);
  }

  snapshot(): readonly T[] {
    this.#shown ??= [...this.#items];
    return this.#shown;
  }
}
