import { useCallback, useEffect, useMemo, useState } from "react";
import type { Run, RunList } from "../generated.js";
import type { RunFilter } from "../resources/types.js";
import { useRunwire } from "./context.js";
import { usePolling } from "./polling.js";

/** A list of runs. */
export interface RunListing {
  /** The runs, newest first. */
  runs: readonly Run[];
  /** Whether there are older ones. */
  hasMore: boolean;
  error: Error | undefined;
  isLoading: boolean;
  refresh(): Promise<void>;
  /** Adds the next page of older runs. */
  more(): Promise<void>;
}

interface Known {
  key: string;
  runs: readonly Run[];
  /** Where older ones begin; `null` at the end. */
  next: string | null;
}

/** Lists runs, and keeps the newest page up to date; `every` is in milliseconds, 1,000 without it. */
export function useRuns(filter: RunFilter = {}, options: { every?: number } = {}): RunListing {
  const client = useRunwire();
  const key = JSON.stringify(filter);
  const { data, error, isLoading, refresh } = usePolling(key, (signal) => client.runs.list(filter, signal), options.every ?? 1000);
  const [state, setState] = useState<Known>();
  useEffect(() => {
    if (data !== undefined) setState((before) => withNewest(before?.key === key ? before : undefined, key, data));
  }, [key, data]);
  const known = state?.key === key ? state : undefined;
  const next = known?.next ?? null;
  const more = useCallback(async () => {
    if (next === null) return;
    const page = await client.runs.list({ ...(JSON.parse(key) as RunFilter), before: next });
    setState((before) => (before?.key === key && before.next === next ? withOlder(before, page) : before));
  }, [client, key, next]);
  return useMemo(
    () => ({ runs: known?.runs ?? NONE, hasMore: next !== null, error, isLoading: isLoading || (known === undefined && error === undefined), refresh, more }),
    [known, next, error, isLoading, refresh, more],
  );
}

const NONE: readonly Run[] = [];

/** Puts the newest page before what is known. Where the two do not meet, what is known is too old to be shown. */
function withNewest(before: Known | undefined, key: string, page: RunList): Known {
  const ids = new Set(page.runs.map((run) => run.run_id));
  const meets = before?.runs.some((run) => ids.has(run.run_id)) ?? false;
  if (before === undefined || !meets) return { key, runs: page.runs, next: page.next ?? null };
  return { key, runs: [...page.runs, ...before.runs.filter((run) => !ids.has(run.run_id))], next: before.next };
}

function withOlder(before: Known, page: RunList): Known {
  const ids = new Set(before.runs.map((run) => run.run_id));
  return { key: before.key, runs: [...before.runs, ...page.runs.filter((run) => !ids.has(run.run_id))], next: page.next ?? null };
}
