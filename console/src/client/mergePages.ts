/** A page of a list, newest first. */
export interface ListPage<T> {
  items: readonly T[];
  /** Cursor of the next page; null at the end. */
  next: string | null;
}

/** Identity and equality of the items of a list. */
export interface ItemIdentity<T> {
  idOf(item: T): string;
  /** Creation time as a sortable string. */
  createdAt(item: T): string;
  /** Returns true if two versions of an item are equal. */
  isSame(left: T, right: T): boolean;
}

/** Merges the newest page into the loaded items: removes items that left the filter, replaces changed ones. */
export function mergeFirstPage<T>(loaded: ListPage<T> | undefined, page: ListPage<T>, identity: ItemIdentity<T>): ListPage<T> {
  if (loaded === undefined) return page;
  if (page.next === null) return reuseUnchanged(loaded, page, identity);
  const ids = new Set(page.items.map(identity.idOf));
  // Without an overlap there is a gap: older pages are loaded again when they are scrolled to.
  if (!loaded.items.some((item) => ids.has(identity.idOf(item)))) return page;
  const last = page.items.at(-1);
  const lastId = last === undefined ? "" : identity.idOf(last);
  const after = loaded.items.findIndex((item) => identity.idOf(item) === lastId) + 1;
  const older =
    after > 0
      ? loaded.items.slice(after)
      : // The page's last item is new; loaded items that are older than it follow the page.
        loaded.items.filter((item) => last !== undefined && !ids.has(identity.idOf(item)) && identity.createdAt(item) < identity.createdAt(last));
  const items = [...page.items, ...older];
  return reuseUnchanged(loaded, { items, next: older.length > 0 ? loaded.next : page.next }, identity);
}

/** Appends an older page to the loaded items. */
export function appendPage<T>(loaded: ListPage<T>, page: ListPage<T>, identity: ItemIdentity<T>): ListPage<T> {
  const ids = new Set(loaded.items.map(identity.idOf));
  return { items: [...loaded.items, ...page.items.filter((item) => !ids.has(identity.idOf(item)))], next: page.next };
}

/** Replaces items that were requested one by one. */
export function replaceItems<T>(loaded: ListPage<T>, items: readonly T[], identity: ItemIdentity<T>): ListPage<T> {
  if (items.length === 0) return loaded;
  const byId = new Map(items.map((item) => [identity.idOf(item), item]));
  return reuseUnchanged(loaded, { items: loaded.items.map((item) => byId.get(identity.idOf(item)) ?? item), next: loaded.next }, identity);
}

/** Reuses unchanged items, so that a poll without changes renders nothing. */
function reuseUnchanged<T>(before: ListPage<T>, after: ListPage<T>, identity: ItemIdentity<T>): ListPage<T> {
  const old = new Map(before.items.map((item) => [identity.idOf(item), item]));
  const items = after.items.map((item) => {
    const loaded = old.get(identity.idOf(item));
    return loaded !== undefined && identity.isSame(loaded, item) ? loaded : item;
  });
  const unchanged = items.length === before.items.length && items.every((item, at) => item === before.items[at]);
  return unchanged && before.next === after.next ? before : { items, next: after.next };
}
