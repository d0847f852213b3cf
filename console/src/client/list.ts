import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { useLive } from "./live";
import { mergeHead, mergeSome, mergeTail, type ListPage, type Shape } from "./merge";

export type { ListPage, Shape };

const pollEvery = 2000;
const headSize = 100;
const tailSize = 200;
/** Open items far down the list are asked for one by one, so only so many. */
const mostAsked = 10;

/** Lists that were left, so that whoever comes back finds them as they were and need not wait. */
const left = new Map<string, ListPage<unknown>>();
const mostLeft = 4;

function keep(key: string, known: ListPage<unknown>) {
  left.delete(key);
  left.set(key, known);
  for (const oldest of left.keys()) {
    if (left.size <= mostLeft) break;
    left.delete(oldest);
  }
}

/** A list on the server: how to ask for it, and what its items look like. */
export interface Source<T> extends Shape<T> {
  /** Another key is another list. */
  key: string;
  page(ask: { before?: string; limit: number; signal?: AbortSignal }): Promise<ListPage<T>>;
  /** Tells whether an item may still change. */
  open(item: T): boolean;
  /** Asks for one item. */
  one(item: T): Promise<T>;
}

/** A list that follows the server. */
export interface LiveList<T> {
  items: readonly T[] | undefined;
  error: unknown;
  /** Whether older items are left. */
  more: boolean;
  loadMore(): void;
  refresh(): void;
}

interface Kept<T> {
  key: string;
  known: ListPage<T> | undefined;
}

/** Lists items newest first, keeps them fresh, and loads older ones on demand. */
export function useList<T>(source: Source<T>): LiveList<T> {
  const { key } = source;
  // The list of one filter is never shown under another.
  const [state, setState] = useState<Kept<T>>(() => ({ key, known: left.get(key) as ListPage<T> | undefined }));
  const known = state.key === key ? state.known : (left.get(key) as ListPage<T> | undefined);
  const latest = useRef({ source, known });
  latest.current = { source, known };
  const loading = useRef(false);
  const [tailError, setTailError] = useState<unknown>();

  const update = useCallback((of: string, change: (known: ListPage<T> | undefined) => ListPage<T> | undefined) => {
    setState((before) => {
      const current = before.key === of ? before.known : (left.get(of) as ListPage<T> | undefined);
      const next = change(current);
      return before.key === of && next === current ? before : { key: of, known: next };
    });
  }, []);

  useEffect(() => {
    if (known !== undefined) keep(key, known);
  }, [key, known]);

  const live = useLive(
    key,
    async (signal) => {
      const { source, known } = latest.current;
      const page = await source.page({ limit: headSize, signal });
      const far = known?.items.slice(headSize).filter(source.open).slice(0, mostAsked) ?? [];
      const some = await Promise.all(far.map((item) => source.one(item).catch(() => item)));
      return { page, some };
    },
    { every: pollEvery },
  );
  const news = live.data;
  useEffect(() => {
    const { source } = latest.current;
    if (news) update(key, (known) => mergeSome(mergeHead(known, news.page, source), news.some, source));
  }, [news, key, update]);

  const loadMore = useCallback(() => {
    const { source, known } = latest.current;
    if (loading.current || known === undefined || known.next === null) return;
    loading.current = true;
    source
      .page({ before: known.next, limit: tailSize })
      .then((page) => {
        setTailError(undefined);
        update(source.key, (now) => (now === undefined ? now : mergeTail(now, page, source)));
      }, setTailError)
      .finally(() => (loading.current = false));
  }, [update]);

  return useMemo(
    () => ({
      items: known?.items,
      error: live.error ?? tailError,
      more: known !== undefined && known.next !== null,
      loadMore,
      refresh: live.refresh,
    }),
    [known, live.error, tailError, loadMore, live.refresh],
  );
}
