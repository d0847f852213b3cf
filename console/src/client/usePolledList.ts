import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { usePolled } from "./usePolled";
import { mergeFirstPage, replaceItems, appendPage, type ListPage, type ItemIdentity } from "./mergePages";

export type { ListPage, ItemIdentity };

const pollInterval = 2000;
const headSize = 100;
const tailSize = 200;
/** Maximum number of items after the first page that are requested one by one. */
const maxSingleRequests = 10;

/** Lists of pages that were left, shown at once when a page is visited again. */
const cache = new Map<string, ListPage<unknown>>();
const maxCachedLists = 4;

function store(key: string, loaded: ListPage<unknown>) {
  cache.delete(key);
  cache.set(key, loaded);
  for (const oldest of cache.keys()) {
    if (cache.size <= maxCachedLists) break;
    cache.delete(oldest);
  }
}

/** A list on the server: its requests and the identity of its items. */
export interface ListSource<T> extends ItemIdentity<T> {
  /** Key of the list; another key is another list. */
  key: string;
  page(request: { before?: string; limit: number; signal?: AbortSignal }): Promise<ListPage<T>>;
  /** Returns true if an item may still change. */
  mayChange(item: T): boolean;
  /** Requests one item. */
  get(item: T): Promise<T>;
}

/** A list that is kept up to date by polling. */
export interface PolledList<T> {
  items: readonly T[] | undefined;
  error: unknown;
  /** Whether older items exist. */
  hasMore: boolean;
  loadMore(): void;
  refresh(): void;
}

interface ListState<T> {
  key: string;
  loaded: ListPage<T> | undefined;
}

/** Polls the first page of a list, newest first, and loads older pages on demand. */
export function usePolledList<T>(source: ListSource<T>): PolledList<T> {
  const { key } = source;
  // The list of one key is never shown under another.
  const [state, setState] = useState<ListState<T>>(() => ({ key, loaded: cache.get(key) as ListPage<T> | undefined }));
  const loaded = state.key === key ? state.loaded : (cache.get(key) as ListPage<T> | undefined);
  const latest = useRef({ source, loaded });
  latest.current = { source, loaded };
  const loading = useRef(false);
  const [tailError, setTailError] = useState<unknown>();

  const updateState = useCallback((of: string, change: (loaded: ListPage<T> | undefined) => ListPage<T> | undefined) => {
    setState((before) => {
      const current = before.key === of ? before.loaded : (cache.get(of) as ListPage<T> | undefined);
      const next = change(current);
      return before.key === of && next === current ? before : { key: of, loaded: next };
    });
  }, []);

  useEffect(() => {
    if (loaded !== undefined) store(key, loaded);
  }, [key, loaded]);

  const live = usePolled(
    key,
    async (signal) => {
      const { source, loaded } = latest.current;
      const page = await source.page({ limit: headSize, signal });
      const openItems = loaded?.items.slice(headSize).filter(source.mayChange).slice(0, maxSingleRequests) ?? [];
      const refreshed = await Promise.all(openItems.map((item) => source.get(item).catch(() => item)));
      return { page, refreshed };
    },
    { interval: pollInterval },
  );
  const polled = live.data;
  useEffect(() => {
    const { source } = latest.current;
    if (polled) updateState(key, (loaded) => replaceItems(mergeFirstPage(loaded, polled.page, source), polled.refreshed, source));
  }, [polled, key, updateState]);

  const loadMore = useCallback(() => {
    const { source, loaded } = latest.current;
    if (loading.current || loaded === undefined || loaded.next === null) return;
    loading.current = true;
    source
      .page({ before: loaded.next, limit: tailSize })
      .then((page) => {
        setTailError(undefined);
        updateState(source.key, (current) => (current === undefined ? current : appendPage(current, page, source)));
      }, setTailError)
      .finally(() => (loading.current = false));
  }, [updateState]);

  return useMemo(
    () => ({
      items: loaded?.items,
      error: live.error ?? tailError,
      hasMore: loaded !== undefined && loaded.next !== null,
      loadMore,
      refresh: live.refresh,
    }),
    [loaded, live.error, tailError, loadMore, live.refresh],
  );
}
