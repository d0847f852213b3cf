import { useCallback, useRef } from "react";
import type { Thread } from "@runwire/client";
import { Link } from "../router";
import { firstLine, shortId } from "../runs/runText";
import { useText } from "../text";
import { Badge, Empty, ErrorAlert, Loading, Page, Status, Time, useRowKeys, VirtualList, type VirtualListHandle } from "../ui";
import { useThreadList } from "./useThreadList";
import style from "./ThreadsPage.module.css";

/** List of the threads, newest first. */
export function ThreadsPage() {
  const { t } = useText();
  const list = useThreadList();
  const container = useRef<HTMLDivElement>(null);
  const handle = useRef<VirtualListHandle>(null);
  const threads = list.items ?? [];
  useRowKeys(
    threads.map((thread) => thread.thread_id),
    container,
    handle,
  );
  const keyOf = useCallback((index: number) => threads[index]?.thread_id ?? index, [threads]);
  return (
    <Page title={t.threads.title} width="reading">
      {list.error !== undefined && list.items === undefined && <ErrorAlert error={list.error} onRetry={list.refresh} />}
      {list.items === undefined && list.error === undefined && <Loading lines={8} />}
      {list.items?.length === 0 && <Empty icon="threads" title={t.threads.empty} detail={t.threads.emptyDetail} />}
      <div ref={container}>
        {threads.length > 0 && (
          <VirtualList
            role="list"
            aria-label={t.threads.list}
            handle={handle}
            count={threads.length}
            estimate={65}
            keyOf={keyOf}
            onEnd={list.loadMore}
            rowProps={() => ({ role: "listitem", className: style["rowContainer"] })}
            row={(index) => {
              const thread = threads[index];
              return thread === undefined ? null : <ThreadRow thread={thread} />;
            }}
          />
        )}
      </div>
    </Page>
  );
}

function ThreadRow({ thread }: { thread: Thread }) {
  const { t } = useText();
  const title = firstLine(thread.title);
  const { latest } = thread;
  const open = thread.open_runs.length;
  return (
    <div className={style["row"]}>
      <div className={style["main"]}>
        <Link to={{ name: "thread", id: thread.thread_id }} className={style["link"]} data-row={thread.thread_id} title={thread.thread_id}>
          {title ?? <span className="mono">{thread.thread_id}</span>}
        </Link>
        <p className={style["detail"]}>
          <span>{t.threads.runCount(thread.runs)}</span>
          {latest !== null && latest.agent !== null && <span>{latest.agent}</span>}
          {title !== null && <span className="mono">{shortId(thread.thread_id)}</span>}
          {thread.parallel && <Badge>{t.threads.parallel}</Badge>}
        </p>
      </div>
      <div className={style["side"]}>
        {open > 1 && <Badge tone="live">{t.threads.openRuns(open)}</Badge>}
        {latest !== null && <Status status={latest.status} />}
        <span className={style["time"]}>
          <Time at={latest?.at ?? thread.created_at} />
        </span>
      </div>
    </div>
  );
}
