import type { Agent, Run } from "@runwire/client";
import type { UseRunResult } from "@runwire/client/react";
import { useEffect, useState, type ReactNode } from "react";
import { Link } from "../router";
import { useText } from "../text";
import { Button, CopyButton, copyText, Duration, Page, Status, Time } from "../ui";
import style from "./Run.module.css";

interface RunHeaderProps {
  id: string;
  run: UseRunResult;
  /** The run as the server lists it, once loaded. */
  summary: Run | undefined;
  agent: Agent | undefined;
  isRetrying: boolean;
  onRetry(): void;
  children: ReactNode;
}

/** Header of a run's page: agent, thread, status, start time, duration and tokens. */
export function RunHeader({ id, run, summary, agent, isRetrying, onRetry, children }: RunHeaderProps) {
  const { t, format, language } = useText();
  const { view } = run;
  const name = view.agent ?? summary?.agent ?? undefined;
  const thread = view.threadId ?? summary?.thread_id;
  const startedAt = view.startedAt ?? (summary ? Date.parse(summary.started_at ?? summary.created_at) : undefined);
  const tokens = view.usage?.totalTokens ?? summary?.usage?.total_tokens;
  const status = run.isCaughtUp ? view.status : summary?.status;
  const isOver = view.endedAt !== undefined;
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
        <ul className={style["metadata"]}>
          {status !== undefined && (
            <li>
              <Status status={status} long />
            </li>
          )}
          {startedAt !== undefined && (
            <li>
              <Time at={new Date(startedAt)} formatText={t.run.started} />
            </li>
          )}
          {startedAt !== undefined && run.isCaughtUp && (
            <li>
              <span className="visually-hidden">{t.run.took}</span>
              <Duration from={new Date(startedAt)} to={view.endedAt === undefined ? undefined : new Date(view.endedAt)} />
            </li>
          )}
          {tokens !== undefined && <li className="tabular-nums">{t.run.tokens(format.number(tokens))}</li>}
          <li className={style["id"]}>
            <code>{id}</code>
            <CopyButton text={id} label={t.run.copyId} />
          </li>
        </ul>
      }
      actions={
        <>
          {isOver && name !== undefined && (
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

/** Button that copies the URL of this view. */
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
