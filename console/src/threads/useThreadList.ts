import type { Thread } from "@runwire/client";
import { client, usePolledList, type PolledList } from "../client";

/** Lists threads newest first, and polls them. */
export function useThreadList(): PolledList<Thread> {
  return usePolledList<Thread>({
    key: "threads",
    page: async ({ signal, ...paging }) => {
      const { threads, next } = await client.threads.list(paging, signal);
      return { items: threads, next: next ?? null };
    },
    get: (thread) => client.threads.get(thread.thread_id),
    mayChange: (thread) => thread.open_runs.length > 0,
    idOf: (thread) => thread.thread_id,
    createdAt: (thread) => thread.created_at,
    isSame: (left, right) => left.cursor === right.cursor && left.runs === right.runs && left.open_runs.length === right.open_runs.length,
  });
}
