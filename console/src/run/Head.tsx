import type { Agent, Run } from "@runwire/client";
import type { UseRunResult } from "@runwire/client/react";
import { useEffect, useState, type ReactNode } from "react";
import { Link } from "../router";
import { useText } from "../text";
import { Button, Copy, copyText, Duration, Page, Status, Time } from "../ui";
import style from "./Run.module.css";

interface HeadProps {
  id: string;
  run: UseRunResult;
  /** What the server says of the run, once it has. */
  known: Run | undefined;
  agent: Agent | undefined;
  isRetrying: boolean;
  onRetry(): void;
  children: ReactNode;
}

/** The head of a run's page: who, in which thread, how it stands, since when, and at what cost. */
export function Head({ id, run, known, agent, isRetrying, onRetry, children }: HeadProps) {
  const { t, format, language } = useText();
  const { view } = run;
  const name = view.agent ?? known?.agent ?? undefined;
  const thread = view.threadId ?? known?.thread_id;
  const startedAt = view.startedAt ?? (known ? Date.parse(known.started_at ?? known.created_at) : undefined);
  const tokens = view.usage?.totalTokens ?? known?.usage?.total_tokens;
  const status = run.isCaughtUp ? view.status : known?.status;
  const over = view.endedAt !== undefined;
  return (
    <Page
      title={t.run.title(id)}
      heading={agent?.title?.[language] ?? name ?? t.run.title(id)}
      above={
        thread === undefined ? undefined : (
          <Link to={{ name: "thread", id: thread }} className={style["thread"]}>
            {t.run.inThread(thread)}
          </Link>
        )
      }
      below={
        <ul className={style["facts"]}>
          {status !== undefined && (
            <li>
              <Status status={status} long />
            </li>
          )}
          {startedAt !== undefined && (
            <li>
              <Time at={new Date(startedAt)} words={t.run.started} />
            </li>
          )}
          {startedAt !== undefined && run.isCaughtUp && (
            <li>
              <span className="unseen">{t.run.took}</span>
              <Duration from={new Date(startedAt)} to={view.endedAt === undefined ? undefined : new Date(view.endedAt)} />
            </li>
          )}
          {tokens !== undefined && <li className="figures">{t.run.tokens(format.number(tokens))}</li>}
          <li className={style["id"]}>
            <code>{id}</code>
            <Copy text={id} label={t.run.copyId} />
          </li>
        </ul>
      }
      actions={
        <>
          {over && name !== undefined && (
            <Button icon="retry" busy={isRetrying} onClick={onRetry}>
              {view.status === "completed" ? t.run.again : t.run.retry}
            </Button>
          )}
          <CopyLink />
        </>
      }
    >
      {children}
    </Page>
  );
}

/** Copies the address of this view, and says so for a moment. */
function CopyLink() {
  const { t } = useText();
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => setCopied(false), 1500);
    return () => clearTimeout(timer);
  }, [copied]);
  return (
    <Button icon={copied ? "check" : "copy"} onClick={() => void copyText(location.href).then(setCopied)}>
      {copied ? t.action.copied : t.run.copyLink}
    </Button>
  );
}
