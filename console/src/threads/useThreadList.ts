import type { Thread } from "@runwire/client";
import { client, useList, type LiveList } from "../client";

/** Lists threads newest first, as they stand. */
export function useThreadList(): LiveList<Thread> {
  return useList<Thread>({
    key: "threads",
    page: async ({ signal, ...paging }) => {
      const { threads, next } = await client.threads.list(paging, signal);
      return { items: threads, next: next ?? null };
    },
    one: (thread) => client.threads.get(thread.thread_id),
    open: (thread) => thread.open_runs.length > 0,
    idOf: (thread) => thread.thread_id,
    madeAt: (thread) => thread.created_at,
    same: (left, right) => left.cursor === right.cursor && left.runs === right.runs && left.open_runs.length === right.open_runs.length,
  });
}
