import type { Run, RunFilter } from "@runwire/client";
import { client, useList, type LiveList } from "../client";
import { isOpen } from "./words";

/** Lists runs newest first, as they stand. */
export function useRunList(filter: Pick<RunFilter, "status" | "agent" | "thread" | "prefix">): LiveList<Run> {
  return useList<Run>({
    key: JSON.stringify(["runs", filter.status, filter.agent, filter.thread, filter.prefix]),
    page: async ({ signal, ...paging }) => {
      const { runs, next } = await client.runs.list({ ...filter, ...paging }, signal);
      return { items: runs, next: next ?? null };
    },
    one: (run) => client.runs.get(run.run_id),
    open: isOpen,
    idOf: (run) => run.run_id,
    madeAt: (run) => run.created_at,
    // Whatever happens in a run moves its cursor, or its state.
    same: (left, right) =>
      left.cursor === right.cursor && left.status === right.status && left.cancel_requested === right.cancel_requested,
  });
}
