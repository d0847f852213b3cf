import type { Run, RunFilter } from "@runwire/client";
import { client, usePolledList, type PolledList } from "../client";
import { isOpen } from "./runText";

/** Lists runs newest first, and polls them. */
export function useRunList(filter: Pick<RunFilter, "status" | "agent" | "thread" | "prefix">): PolledList<Run> {
  return usePolledList<Run>({
    key: JSON.stringify(["runs", filter.status, filter.agent, filter.thread, filter.prefix]),
    page: async ({ signal, ...paging }) => {
      const { runs, next } = await client.runs.list({ ...filter, ...paging }, signal);
      return { items: runs, next: next ?? null };
    },
    get: (run) => client.runs.get(run.run_id),
    mayChange: isOpen,
    idOf: (run) => run.run_id,
    createdAt: (run) => run.created_at,
    // Every event of a run advances its cursor or changes its status.
    isSame: (left, right) =>
      left.cursor === right.cursor && left.status === right.status && left.cancel_requested === right.cancel_requested,
  });
}
