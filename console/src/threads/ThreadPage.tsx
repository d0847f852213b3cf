import { lazy, Suspense, useEffect, useRef, useState, type ReactNode } from "react";
import type { RunViewSnapshot } from "@runwire/client";
import { useThread } from "@runwire/client/react";
import { client, connectionLost, connectionRestored, usePolled } from "../client";
import { Link, useRouter } from "../router";
import { loadScrollPosition, useStickToEnd, type ScrollPosition } from "../run/conversation/useStickToEnd";
import { firstLine, shortId } from "../runs/runText";
import { useText } from "../text";
import { Button, CopyButton, Dialog, Empty, ErrorAlert, Icon, Loading, Page, Time } from "../ui";
import { RunSection } from "./RunSection";
import style from "./ThreadPage.module.css";

const Composer = lazy(async () => ({ default: (await import("../run/composer")).Composer }));

/** Number of runs that are shown initially. */
const pageSize = 20;

/** Page of a thread: its runs and the composer. */
export function ThreadPage({ id }: { id: string }) {
  const { t } = useText();
  const thread = useThread(id);
  const summary = usePolled(`thread ${id}`, () => client.threads.get(id), { interval: 5000 });
  const [deleting, setDeleting] = useState(false);

  useEffect(() => {
    if (thread.connection === "waiting") connectionLost();
    if (thread.connection === "live") connectionRestored();
  }, [thread.connection]);

  const title = firstLine(summary.data?.title ?? null);
  const name = title ?? t.runs.inThread(shortId(id));
  const agent = thread.runs.findLast((run) => run.agent !== undefined)?.agent;
  const openRun = summary.data?.parallel === true ? undefined : thread.openRun;
  const error = summary.data === undefined ? summary.error : undefined;

  return (
    <Page
      title={name}
      width="reading"
      above={<Link to={{ name: "threads" }}>{t.threads.title}</Link>}
      below={
        <span className={style["metadata"]}>
          <span className="mono">{id}</span>
          <CopyButton text={id} />
          {summary.data !== undefined && (
            <>
              <span>{t.threads.runCount(summary.data.runs)}</span>
              <Time at={summary.data.created_at} />
            </>
          )}
        </span>
      }
      actions={
        <>
          <Link to={`/runs?thread=${encodeURIComponent(id)}`} className={style["link"]}>
            <Icon name="runs" />
            {t.runs.title}
          </Link>
          {summary.data !== undefined && (
            <Button variant="quiet" icon="trash" onClick={() => setDeleting(true)}>
              {t.action.delete}
            </Button>
          )}
        </>
      }
    >
      {error !== undefined && <ErrorAlert error={error} onRetry={summary.refresh} />}
      {error === undefined && thread.error !== undefined && <ErrorAlert error={thread.error} onRetry={thread.refresh} />}
      {error === undefined && !thread.isCaughtUp && thread.error === undefined && <Loading />}
      {thread.isCaughtUp && thread.runs.length === 0 && <Empty icon="threads" title={t.threads.noRuns} />}
      {summary.data !== undefined && thread.isCaughtUp && (
        <ThreadRuns id={id} runs={thread.runs}>
          <Composer agent={agent} threadId={id} blockedReason={openRun === undefined ? undefined : t.threads.busy} onStarted={summary.refresh} />
        </ThreadRuns>
      )}
      <DeleteDialog id={id} hasOpenRun={thread.openRun !== undefined} open={deleting} onClose={() => setDeleting(false)} />
    </Page>
  );
}

/** The newest runs, earlier ones on demand, and the composer. A thread with several runs opens at its end. */
function ThreadRuns({ id, runs, children }: { id: string; runs: readonly RunViewSnapshot[]; children: ReactNode }) {
  const { t } = useText();
  const [visibleCount, setVisibleCount] = useState(pageSize);
  const content = useRef<HTMLDivElement>(null);
  const key = `runwire.scroll.thread.${id}`;
  const [initial] = useState<ScrollPosition | undefined>(() => loadScrollPosition(key) ?? (runs.length > 1 ? { end: true } : undefined));
  useStickToEnd(content, true, initial, key);
  const hidden = Math.max(0, runs.length - visibleCount);
  return (
    <div ref={content}>
      {hidden > 0 && (
        <Button size="small" variant="quiet" icon="arrowUp" onClick={() => setVisibleCount(visibleCount + pageSize)}>
          {t.threads.older}
        </Button>
      )}
      {runs.slice(hidden).map((run) => (
        <RunSection key={run.runId} run={run} />
      ))}
      <div className={style["next"]}>
        <Suspense>{children}</Suspense>
      </div>
    </div>
  );
}

interface DeleteDialogProps {
  id: string;
  hasOpenRun: boolean;
  open: boolean;
  onClose(): void;
}

function DeleteDialog({ id, hasOpenRun, open, onClose }: DeleteDialogProps) {
  const { t } = useText();
  const { navigate } = useRouter();
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const remove = async () => {
    setBusy(true);
    setError(undefined);
    try {
      await client.threads.delete(id, { force: hasOpenRun });
      navigate({ name: "threads" }, { replace: true });
    } catch (error) {
      setError(error);
      setBusy(false);
    }
  };
  return (
    <Dialog
      open={open}
      onClose={onClose}
      title={t.threads.deleteTitle}
      actions={
        <>
          <Button onClick={onClose}>{t.action.cancel}</Button>
          <Button variant="danger" icon="trash" busy={busy} onClick={() => void remove()}>
            {t.action.delete}
          </Button>
        </>
      }
    >
      <p>{t.threads.deleteDetail}</p>
      {hasOpenRun && <p>{t.threads.deleteForce}</p>}
      {error !== undefined && <ErrorAlert error={error} isUserAction />}
    </Dialog>
  );
}
