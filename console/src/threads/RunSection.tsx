import { memo } from "react";
import type { Part, RunViewSnapshot } from "@runwire/client";
import { Link } from "../router";
import { UserMessage } from "../run/conversation/UserMessage";
import { useText } from "../text";
import { Badge, Duration, Icon, Markdown, Status } from "../ui";
import style from "./RunSection.module.css";

/** Summary of a run: messages, errors and status. */
export const RunSection = memo(function RunSection({ run }: { run: RunViewSnapshot }) {
  const { t } = useText();
  const to = { name: "run", id: run.runId, tab: "conversation" } as const;
  const tools = run.parts.filter((part) => part.kind === "tool").length;
  const openInteractions = run.parts.filter((part) => part.kind === "interaction" && part.status === "open").length;
  const hasOutput = run.parts.some((part) => part.kind !== "user");
  return (
    <article className={style["run"]} data-part={run.runId}>
      {run.parts.map((part) => (
        <MessagePart key={part.id} part={part} />
      ))}
      {!hasOutput && <p className={style["noOutput"]}>{t.threads.messageEmpty}</p>}
      <footer className={style["foot"]}>
        <Status status={run.status} long />
        {run.agent !== undefined && <span>{run.agent}</span>}
        <Duration from={run.startedAt} to={run.endedAt} />
        {tools > 0 && <span>{t.threads.tools(tools)}</span>}
        {openInteractions > 0 && <Badge tone="warn">{t.runs.openInteractions(openInteractions)}</Badge>}
        <Link to={to} className={style["open"]}>
          {t.threads.openTheRun}
          <Icon name="arrowRight" size={14} />
        </Link>
      </footer>
    </article>
  );
});

/** A message or error of the run; other parts are on the run's page. */
const MessagePart = memo(function MessagePart({ part }: { part: Part }) {
  switch (part.kind) {
    case "user":
      return <UserMessage part={part} />;
    case "text":
      return <Markdown text={part.text} streaming={part.endedAt === undefined} />;
    case "error":
      return (
        <p className={style["error"]}>
          <Icon name="warning" />
          {part.error.message}
        </p>
      );
    default:
      return null;
  }
});
