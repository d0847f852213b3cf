/** A page of a list, newest first. */
export interface ListPage<T> {
  items: readonly T[];
  /** Where to go on; null once the first item is known. */
  next: string | null;
}

/** How items of a list are told apart. */
export interface Shape<T> {
  idOf(item: T): string;
  /** When it was made, in a form that sorts. */
  madeAt(item: T): string;
  /** Tells whether two states of one item look the same. */
  same(left: T, right: T): boolean;
}

/** Puts the newest page before what is known. Items that left the filter go, those that changed are replaced. */
export function mergeHead<T>(known: ListPage<T> | undefined, page: ListPage<T>, shape: Shape<T>): ListPage<T> {
  if (known === undefined) return page;
  if (page.next === null) return keepIfSame(known, page, shape);
  const ids = new Set(page.items.map(shape.idOf));
  // So much came at once that there is a gap: older pages are asked for again when they are scrolled to.
  if (!known.items.some((item) => ids.has(shape.idOf(item)))) return page;
  const last = page.items.at(-1);
  const lastId = last === undefined ? "" : shape.idOf(last);
  const after = known.items.findIndex((item) => shape.idOf(item) === lastId) + 1;
  const older =
    after > 0
      ? known.items.slice(after)
      : // The page's last item is new to us; whatever is older than it lies behind the page.
        known.items.filter((item) => last !== undefined && !ids.has(shape.idOf(item)) && shape.madeAt(item) < shape.madeAt(last));
  const items = [...page.items, ...older];
  return keepIfSame(known, { items, next: older.length > 0 ? known.next : page.next }, shape);
}

/** Puts an older page after what is known. */
export function mergeTail<T>(known: ListPage<T>, page: ListPage<T>, shape: Shape<T>): ListPage<T> {
  const ids = new Set(known.items.map(shape.idOf));
  return { items: [...known.items, ...page.items.filter((item) => !ids.has(shape.idOf(item)))], next: page.next };
}

/** Replaces items that were asked for one by one. */
export function mergeSome<T>(known: ListPage<T>, some: readonly T[], shape: Shape<T>): ListPage<T> {
  if (some.length === 0) return known;
  const fresh = new Map(some.map((item) => [shape.idOf(item), item]));
  return keepIfSame(known, { items: known.items.map((item) => fresh.get(shape.idOf(item)) ?? item), next: known.next }, shape);
}

/** A poll that brought nothing new must not draw anything again. */
function keepIfSame<T>(before: ListPage<T>, after: ListPage<T>, shape: Shape<T>): ListPage<T> {
  const old = new Map(before.items.map((item) => [shape.idOf(item), item]));
  const items = after.items.map((item) => {
    const known = old.get(shape.idOf(item));
    return known !== undefined && shape.same(known, item) ? known : item;
  });
  const unchanged = items.length === before.items.length && items.every((item, at) => item === before.items[at]);
  return unchanged && before.next === after.next ? before : { items, next: after.next };
}
