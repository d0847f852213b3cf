import type { ActivityPart, CustomPart, ErrorPart, NoticePart, SubagentPart } from "@runwire/client";
import { useId, type ReactNode } from "react";
import { useText } from "../../text";
import { Badge, Button, classNames, Duration, Icon, JsonTree, StatusDot, type IconName } from "../../ui";
import { Values } from "../forms/Values";
import { useCollapsible, useConversation } from "./conversationContext";
import { Collapsible } from "./Collapsible";
import style from "./Conversation.module.css";

/** A notice, warning or error that does not end the run. */
export function Notice({ part }: { part: NoticePart }) {
  const { t } = useText();
  // The error at the end has the same message.
  if (part.isRepeated === true) return null;
  if (part.level === "debug") {
    return <CompactRow id={part.id} icon="info" title={part.message} value={part.details} />;
  }
  return (
    <div className={classNames(style["notice"], part.level === "error" && style["noticeError"])}>
      <Icon name="warning" />
      <p className={style["noticeText"]}>{part.message}</p>
      {part.fatal !== true && part.level === "error" && <Badge tone="warn">{t.run.parts.runContinues}</Badge>}
      {part.code !== undefined && <code className={style["code"]}>{part.code}</code>}
    </div>
  );
}

/** The error that the run failed with, and a retry button. */
export function Failure({ part }: { part: ErrorPart }) {
  const { t } = useText();
  const { onRetry, isRetrying } = useConversation();
  const { error } = part;
  const id = useId();
  const { open, toggle } = useCollapsible(part.id, false);
  const kind = [error.kind, error.domain].filter((each) => each !== undefined).join(" · ");
  return (
    <section className={style["failure"]} aria-label={t.run.parts.failed}>
      <div className={style["failureHeader"]}>
        <Icon name="warning" size={18} />
        <div className={style["failureText"]}>
          <h2>{t.run.parts.failed}</h2>
          <p>{error.message}</p>
          <p className={style["failureDetails"]}>
            {error.code !== undefined && <code>{error.code}</code>} {kind}
            {error.retryable !== undefined && <Badge tone={error.retryable ? "warn" : "quiet"}>{t.run.parts.retryable(error.retryable)}</Badge>}
          </p>
        </div>
        {onRetry && (
          <Button icon="retry" busy={isRetrying} onClick={onRetry}>
            {t.run.retry}
          </Button>
        )}
      </div>
      {error.details !== undefined && error.details !== null && (
        <>
          <button type="button" className={style["toggle"]} aria-expanded={open} aria-controls={id} onClick={toggle}>
            {t.run.parts.details}
            <Icon name="chevron" size={12} className={classNames(style["chevron"], open && style["rotated"])} />
          </button>
          <Collapsible open={open} id={id}>
            <Values value={error.details} label={t.run.parts.details} />
          </Collapsible>
        </>
      )}
    </section>
  );
}

/** A run of a subagent. */
export function Subagent({ part }: { part: SubagentPart }) {
  const { t, format } = useText();
  const status = part.status === "running" ? "running" : part.status;
  return (
    <CompactRow
      id={part.id}
      before={<StatusDot status={status} />}
      title={t.run.parts.subagent(part.name ?? part.subagentId ?? "")}
      after={part.endedAt === undefined ? <Duration from={new Date(part.startedAt)} /> : format.duration(part.endedAt - part.startedAt)}
      value={part.error ?? part.result}
    />
  );
}

/** An activity message. */
export function ActivityRow({ part }: { part: ActivityPart }) {
  return <CompactRow id={part.id} icon="clock" title={part.activityType} value={part.content} />;
}

/** A custom event, or an event of an unknown type. */
export function CustomRow({ part }: { part: CustomPart }) {
  const { t } = useText();
  const title = part.dialect === undefined ? (part.name ?? t.run.parts.custom) : t.run.parts.foreign(part.dialect, part.name ?? "");
  return <CompactRow id={part.id} icon="more" title={title} value={part.value} />;
}

interface CompactRowProps {
  id: string;
  icon?: IconName;
  before?: ReactNode;
  title: string;
  after?: ReactNode;
  value: unknown;
}

/** A compact row that expands to its value. */
function CompactRow({ id, icon, before, title, after, value }: CompactRowProps) {
  const bodyId = useId();
  const { open, toggle } = useCollapsible(id, false);
  const hasValue = value !== undefined && value !== null;
  const heading = (
    <>
      {before}
      {icon && <Icon name={icon} />}
      <span className={style["compactTitle"]}>{title}</span>
      {after !== undefined && <span className="tabular-nums">{after}</span>}
    </>
  );
  if (!hasValue) return <div className={style["compactRow"]}>{heading}</div>;
  return (
    <div>
      <button type="button" className={classNames(style["toggle"], style["compactRow"])} aria-expanded={open} aria-controls={bodyId} onClick={toggle}>
        {heading}
        <Icon name="chevron" size={12} className={classNames(style["chevron"], open && style["rotated"])} />
      </button>
      <Collapsible open={open} id={bodyId}>
        <div className={style["compactBody"]}>
          {typeof value === "string" ? <p className={style["plain"]}>{value}</p> : <JsonTree value={value} depth={1} label={title} />}
        </div>
      </Collapsible>
    </div>
  );
}
