import type { ToolPart } from "@runwire/client";
import { useId } from "react";
import { useText } from "../../text";
import { classNames, Duration, Icon, JsonTree, StatusDot } from "../../ui";
import { Values } from "../forms/Values";
import { maxParallel } from "./chunks";
import { useCollapsible, useIsNew } from "./conversationContext";
import { Collapsible } from "./Collapsible";
import style from "./Tool.module.css";

/** Consecutive tool calls. */
export function ToolCalls({ calls }: { calls: readonly ToolPart[] }) {
  const { t } = useText();
  const parallel = maxParallel(calls);
  return (
    <div role="group" aria-label={t.run.tool.calls(calls.length)}>
      {parallel > 1 && (
        <p className={style["parallel"]}>
          <Icon name="branch" size={12} />
          {t.run.tool.parallel(parallel)}
        </p>
      )}
      <ul className={style["stack"]}>
        {calls.map((call) => (
          <ToolCard key={call.id} call={call} />
        ))}
      </ul>
    </div>
  );
}

const dotStatus = {
  preparing: "running",
  called: "pending",
  running: "running",
  success: "completed",
  partial: "completed",
  failure: "failed",
  abandoned: "cancelled",
} as const;

/** A tool call: expanded while it runs, collapsed when it has ended. */
function ToolCard({ call }: { call: ToolPart }) {
  const { t, format } = useText();
  const id = useId();
  const isNew = useIsNew(call.id);
  const isRunning = call.status === "running" || call.status === "preparing";
  const { open, toggle } = useCollapsible(call.id, isRunning);
  const duration = call.durationMs ?? (call.endedAt === undefined ? undefined : call.endedAt - call.startedAt);
  const note = noteOf(call);
  return (
    <li className={classNames(style["card"], isNew && style["new"])} data-part={call.id}>
      <button type="button" className={style["head"]} aria-expanded={open} aria-controls={id} onClick={toggle}>
        <StatusDot status={dotStatus[call.status]} />
        <span className={style["name"]}>{call.name === "" ? t.run.tool.unnamed : call.name}</span>
        <span className={style["description"]}>{call.description ?? ""}</span>
        <span className="visually-hidden">{t.run.tool.status[call.status]}</span>
        <span className={style["time"]}>
          {duration !== undefined ? format.duration(duration) : isRunning ? <Duration from={new Date(call.startedAt)} /> : t.run.tool.status[call.status]}
        </span>
        <Icon name="chevron" size={12} className={classNames(style["chevron"], open && style["rotated"])} />
      </button>
      {isRunning && call.progress !== undefined && (
        <progress className={style["progress"]} max={100} value={call.progress} aria-label={call.progressMessage ?? call.name} />
      )}
      {note !== undefined && <p className={classNames(style["note"], call.status === "failure" && style["failed"])}>{note}</p>}
      <Collapsible open={open} id={id}>
        <ToolBody call={call} />
      </Collapsible>
    </li>
  );
}

/** Returns the error or progress message that is shown while the card is collapsed. */
function noteOf(call: ToolPart): string | undefined {
  if (call.error !== undefined) return call.error.message;
  if (call.status === "running") return call.progressMessage;
  return undefined;
}

function ToolBody({ call }: { call: ToolPart }) {
  const { t } = useText();
  const texts = t.run.tool;
  const raw = call.arguments === undefined || call.incomplete === true ? call.argumentsText : undefined;
  const hasArguments = typeof call.arguments === "object" && call.arguments !== null && Object.keys(call.arguments).length > 0;
  return (
    <div className={style["body"]}>
      {hasArguments && (
        <div>
          <p className={style["label"]}>{texts.arguments}</p>
          <Values value={call.arguments} label={texts.arguments} />
        </div>
      )}
      {raw !== undefined && raw !== "" && (
        <div>
          <p className={style["label"]}>{call.incomplete === true ? texts.incomplete : texts.arguments}</p>
          <pre tabIndex={0}>{raw}</pre>
        </div>
      )}
      {call.output !== undefined && call.output !== "" && (
        <div>
          <p className={style["label"]}>{texts.output}</p>
          <pre tabIndex={0}>{lastCharacters(call.output)}</pre>
        </div>
      )}
      {call.result !== undefined && (
        <div>
          <p className={style["label"]}>{texts.result}</p>
          {typeof call.result === "string" ? <pre tabIndex={0}>{lastCharacters(call.result)}</pre> : <JsonTree value={call.result} depth={2} label={texts.result} />}
        </div>
      )}
      {call.error !== undefined && (
        <div>
          <p className={style["label"]}>{texts.error}</p>
          <Values value={call.error} label={texts.error} />
        </div>
      )}
    </div>
  );
}

const maxOutputLength = 20_000;

/** Truncates a long output at its beginning; the events have all of it. */
function lastCharacters(output: string): string {
  return output.length <= maxOutputLength ? output : `…${output.slice(-maxOutputLength)}`;
}
