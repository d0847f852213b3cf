/** A list with cached snapshots: `snapshot` returns the same array until the list changes. */
export class SnapshotList<T> {
  readonly #items: T[] = [];
  #cached: readonly T[] | undefined;

  get length(): number {
    return this.#items.length;
  }

  at(index: number): T | undefined {
    return this.#items.at(index);
  }

  push(item: T): void {
    this.#items.push(item);
    this.#cached = undefined;
  }

  set(index: number, item: T): void {
    this.#items[index] = item;
    this.#cached = undefined;
  }

  findLast(predicate: (item: T) => boolean): T | undefined {
    return this.#items.findLast(predicate);
  }

  findLastIndex(predicate: (item: T) => boolean): number {
    return this.#items.findLastIndex(predicate);
  }

  snapshot(): readonly T[] {
    this.#cached ??= [...this.#items];
    return this.#cached;
  }
}
