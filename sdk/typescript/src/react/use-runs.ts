import { useCallback, useEffect, useMemo, useState } from "react";
import type { Run, RunList } from "../generated.js";
import type { RunFilter } from "../resources/types.js";
import { useRunwire } from "./context.js";
import { usePolling } from "./polling.js";

/** Result of `useRuns`. */
export interface UseRunsResult {
  /** The runs, newest first. */
  runs: readonly Run[];
  /** Whether older runs exist. */
  hasMore: boolean;
  error: Error | undefined;
  isLoading: boolean;
  refresh(): Promise<void>;
  /** Loads the next page of older runs. */
  loadMore(): Promise<void>;
}

interface LoadedRuns {
  key: string;
  runs: readonly Run[];
  /** Cursor of the next page; `null` at the end. */
  next: string | null;
}

/** Lists runs and polls the newest page; `interval` is in milliseconds. Default: 1,000. */
export function useRuns(filter: RunFilter = {}, options: { interval?: number } = {}): UseRunsResult {
  const client = useRunwire();
  const key = JSON.stringify(filter);
  const { data, error, isLoading, refresh } = usePolling(key, (signal) => client.runs.list(filter, signal), options.interval ?? 1000);
  const [state, setState] = useState<LoadedRuns>();
  useEffect(() => {
    if (data !== undefined) setState((before) => mergeNewestPage(before?.key === key ? before : undefined, key, data));
  }, [key, data]);
  const loaded = state?.key === key ? state : undefined;
  const next = loaded?.next ?? null;
  const loadMore = useCallback(async () => {
    if (next === null) return;
    const page = await client.runs.list({ ...(JSON.parse(key) as RunFilter), before: next });
    setState((before) => (before?.key === key && before.next === next ? appendOlderPage(before, page) : before));
  }, [client, key, next]);
  return useMemo(
    () => ({ runs: loaded?.runs ?? NO_RUNS, hasMore: next !== null, error, isLoading: isLoading || (loaded === undefined && error === undefined), refresh, loadMore }),
    [loaded, next, error, isLoading, refresh, loadMore],
  );
}

const NO_RUNS: readonly Run[] = [];

/** Prepends the newest page. Without an overlap there is a gap, and the loaded runs are dropped. */
function mergeNewestPage(before: LoadedRuns | undefined, key: string, page: RunList): LoadedRuns {
  const ids = new Set(page.runs.map((run) => run.run_id));
  const overlaps = before?.runs.some((run) => ids.has(run.run_id)) ?? false;
  if (before === undefined || !overlaps) return { key, runs: page.runs, next: page.next ?? null };
  return { key, runs: [...page.runs, ...before.runs.filter((run) => !ids.has(run.run_id))], next: before.next };
}

function appendOlderPage(before: LoadedRuns, page: RunList): LoadedRuns {
  const ids = new Set(before.runs.map((run) => run.run_id));
  return { key: before.key, runs: [...before.runs, ...page.runs.filter((run) => !ids.has(run.run_id))], next: page.next ?? null };
}
