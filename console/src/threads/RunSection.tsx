import { memo } from "react";
import type { Part, RunViewSnapshot } from "@runwire/client";
import { Link } from "../router";
import { UserMessage } from "../run/conversation/UserMessage";
import { useText } from "../text";
import { Badge, Duration, Icon, Markdown, Status } from "../ui";
import style from "./RunSection.module.css";

/** One run of a conversation, in short: what was asked, what was said, and how it ended. */
export const RunSection = memo(function RunSection({ run }: { run: RunViewSnapshot }) {
  const { t } = useText();
  const to = { name: "run", id: run.runId, tab: "conversation" } as const;
  const tools = run.parts.filter((part) => part.kind === "tool").length;
  const asks = run.parts.filter((part) => part.kind === "interaction" && part.status === "open").length;
  const said = run.parts.some((part) => part.kind !== "user");
  return (
    <article className={style["run"]} data-part={run.runId}>
      {run.parts.map((part) => (
        <Said key={part.id} part={part} />
      ))}
      {!said && <p className={style["silent"]}>{t.threads.messageEmpty}</p>}
      <footer className={style["foot"]}>
        <Status status={run.status} long />
        {run.agent !== undefined && <span>{run.agent}</span>}
        <Duration from={run.startedAt} to={run.endedAt} />
        {tools > 0 && <span>{t.threads.tools(tools)}</span>}
        {asks > 0 && <Badge tone="warn">{t.runs.asks(asks)}</Badge>}
        <Link to={to} className={style["open"]}>
          {t.threads.openTheRun}
          <Icon name="arrowRight" size={14} />
        </Link>
      </footer>
    </article>
  );
});

/** Only what the two sides said to one another; how it came about is on the run's own page. */
const Said = memo(function Said({ part }: { part: Part }) {
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
