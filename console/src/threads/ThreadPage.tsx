import { lazy, Suspense, useEffect, useRef, useState, type ReactNode } from "react";
import type { RunViewSnapshot } from "@runwire/client";
import { useThread } from "@runwire/client/react";
import { client, connectionLost, connectionRestored, usePolled } from "../client";
import { Link, useRouter } from "../router";
import { loadScrollPosition, useStickToEnd, type ScrollPosition } from "../run/conversation/useStickToEnd";
import { firstLine, shortId } from "../runs/words";
import { useText } from "../text";
import { Button, Copy, Dialog, Empty, ErrorNote, Icon, Loading, Page, Time } from "../ui";
import { RunSection } from "./RunSection";
import style from "./ThreadPage.module.css";

const Composer = lazy(async () => ({ default: (await import("../run/composer")).Composer }));

/** So many runs are drawn at first. */
const shownAtFirst = 20;

/** One conversation: its runs, one after the other, and those to come. */
export function ThreadPage({ id }: { id: string }) {
  const { t } = useText();
  const thread = useThread(id);
  const facts = usePolled(`thread ${id}`, () => client.threads.get(id), { interval: 5000 });
  const [deleting, setDeleting] = useState(false);

  useEffect(() => {
    if (thread.connection === "waiting") connectionLost();
    if (thread.connection === "live") connectionRestored();
  }, [thread.connection]);

  const title = firstLine(facts.data?.title ?? null);
  const name = title ?? t.runs.inThread(shortId(id));
  const agent = thread.runs.findLast((run) => run.agent !== undefined)?.agent;
  const openRun = facts.data?.parallel === true ? undefined : thread.openRun;
  const error = facts.data === undefined ? facts.error : undefined;

  return (
    <Page
      title={name}
      width="reading"
      above={<Link to={{ name: "threads" }}>{t.threads.title}</Link>}
      below={
        <span className={style["facts"]}>
          <span className="mono">{id}</span>
          <Copy text={id} />
          {facts.data !== undefined && (
            <>
              <span>{t.threads.runCount(facts.data.runs)}</span>
              <Time at={facts.data.created_at} />
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
          {facts.data !== undefined && (
            <Button variant="quiet" icon="trash" onClick={() => setDeleting(true)}>
              {t.action.delete}
            </Button>
          )}
        </>
      }
    >
      {error !== undefined && <ErrorNote error={error} onRetry={facts.refresh} />}
      {error === undefined && thread.error !== undefined && <ErrorNote error={thread.error} onRetry={thread.refresh} />}
      {error === undefined && !thread.isCaughtUp && thread.error === undefined && <Loading />}
      {thread.isCaughtUp && thread.runs.length === 0 && <Empty icon="threads" title={t.threads.noRuns} />}
      {facts.data !== undefined && thread.isCaughtUp && (
        <RunsInOrder id={id} runs={thread.runs}>
          <Composer agent={agent} threadId={id} blockedReason={openRun === undefined ? undefined : t.threads.busy} onStarted={facts.refresh} />
        </RunsInOrder>
      )}
      <DeleteDialog id={id} hasOpenRun={thread.openRun !== undefined} open={deleting} onClose={() => setDeleting(false)} />
    </Page>
  );
}

/** The newest runs, earlier ones on demand, and below them how to go on. A conversation of several runs opens at its end. */
function RunsInOrder({ id, runs, children }: { id: string; runs: readonly RunViewSnapshot[]; children: ReactNode }) {
  const { t } = useText();
  const [shown, setShown] = useState(shownAtFirst);
  const content = useRef<HTMLDivElement>(null);
  const key = `runwire.place.thread.${id}`;
  const [first] = useState<ScrollPosition | undefined>(() => loadScrollPosition(key) ?? (runs.length > 1 ? { end: true } : undefined));
  useStickToEnd(content, true, first, key);
  const hidden = Math.max(0, runs.length - shown);
  return (
    <div ref={content}>
      {hidden > 0 && (
        <Button size="small" variant="quiet" icon="arrowUp" onClick={() => setShown(shown + shownAtFirst)}>
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
  const { go } = useRouter();
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const remove = async () => {
    setBusy(true);
    setError(undefined);
    try {
      await client.threads.delete(id, { force: hasOpenRun });
      go({ name: "threads" }, { replace: true });
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
      {error !== undefined && <ErrorNote error={error} wanted />}
    </Dialog>
  );
}
