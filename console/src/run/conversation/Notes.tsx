import type { ActivityPart, CustomPart, ErrorPart, NoticePart, SubagentPart } from "@runwire/client";
import { useId, type ReactNode } from "react";
import { useText } from "../../text";
import { Badge, Button, classes, Duration, Icon, JsonTree, StatusDot, type IconName } from "../../ui";
import { Values } from "../forms/Values";
import { useFold, useReading } from "./context";
import { Fold } from "./Fold";
import style from "./Conversation.module.css";

/** Something to know of that does not end the run. */
export function Notice({ part }: { part: NoticePart }) {
  const { t } = useText();
  // The error at the end says the same.
  if (part.isRepeated === true) return null;
  if (part.level === "debug") {
    return <QuietRow id={part.id} icon="info" title={part.message} value={part.details} />;
  }
  return (
    <div className={classes(style["notice"], part.level === "error" && style["noticeError"])}>
      <Icon name="warning" />
      <p className={style["noticeText"]}>{part.message}</p>
      {part.fatal !== true && part.level === "error" && <Badge tone="warn">{t.run.parts.goesOn}</Badge>}
      {part.code !== undefined && <code className={style["code"]}>{part.code}</code>}
    </div>
  );
}

/** Why the run failed, and what can be done about it. */
export function Failure({ part }: { part: ErrorPart }) {
  const { t } = useText();
  const { onRetry, isRetrying } = useReading();
  const { error } = part;
  const id = useId();
  const { open, toggle } = useFold(part.id, false);
  const kind = [error.kind, error.domain].filter((each) => each !== undefined).join(" · ");
  return (
    <section className={style["failure"]} aria-label={t.run.parts.failed}>
      <div className={style["failureHead"]}>
        <Icon name="warning" size={18} />
        <div className={style["failureText"]}>
          <h2>{t.run.parts.failed}</h2>
          <p>{error.message}</p>
          <p className={style["failureFacts"]}>
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
          <button type="button" className={style["foldHead"]} aria-expanded={open} aria-controls={id} onClick={toggle}>
            {t.run.parts.details}
            <Icon name="chevron" size={12} className={classes(style["chevron"], open && style["turned"])} />
          </button>
          <Fold open={open} id={id}>
            <Values value={error.details} label={t.run.parts.details} />
          </Fold>
        </>
      )}
    </section>
  );
}

/** A subagent at work. */
export function Subagent({ part }: { part: SubagentPart }) {
  const { t, format } = useText();
  const status = part.status === "running" ? "running" : part.status;
  return (
    <QuietRow
      id={part.id}
      before={<StatusDot status={status} />}
      title={t.run.parts.subagent(part.name ?? part.subagentId ?? "")}
      after={part.endedAt === undefined ? <Duration from={new Date(part.startedAt)} /> : format.duration(part.endedAt - part.startedAt)}
      value={part.error ?? part.result}
    />
  );
}

/** An activity that the agent shows. */
export function ActivityRow({ part }: { part: ActivityPart }) {
  return <QuietRow id={part.id} icon="clock" title={part.activityType} value={part.content} />;
}

/** Something of the agent's own. */
export function CustomRow({ part }: { part: CustomPart }) {
  const { t } = useText();
  const title = part.dialect === undefined ? (part.name ?? t.run.parts.custom) : t.run.parts.foreign(part.dialect, part.name ?? "");
  return <QuietRow id={part.id} icon="more" title={title} value={part.value} />;
}

interface QuietRowProps {
  id: string;
  icon?: IconName;
  before?: ReactNode;
  title: string;
  after?: ReactNode;
  value: unknown;
}

/** A small line that opens to what it holds. */
function QuietRow({ id, icon, before, title, after, value }: QuietRowProps) {
  const inner = useId();
  const { open, toggle } = useFold(id, false);
  const has = value !== undefined && value !== null;
  const words = (
    <>
      {before}
      {icon && <Icon name={icon} />}
      <span className={style["quietTitle"]}>{title}</span>
      {after !== undefined && <span className="figures">{after}</span>}
    </>
  );
  if (!has) return <div className={style["quietRow"]}>{words}</div>;
  return (
    <div>
      <button type="button" className={classes(style["foldHead"], style["quietRow"])} aria-expanded={open} aria-controls={inner} onClick={toggle}>
        {words}
        <Icon name="chevron" size={12} className={classes(style["chevron"], open && style["turned"])} />
      </button>
      <Fold open={open} id={inner}>
        <div className={style["quietBody"]}>
          {typeof value === "string" ? <p className={style["plain"]}>{value}</p> : <JsonTree value={value} depth={1} label={title} />}
        </div>
      </Fold>
    </div>
  );
}
