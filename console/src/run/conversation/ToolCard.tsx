import type { ToolPart } from "@runwire/client";
import { useId } from "react";
import { useText } from "../../text";
import { classes, Duration, Icon, JsonTree, StatusDot } from "../../ui";
import { Values } from "../forms/Values";
import { sideBySide } from "./chunks";
import { useFold, useFresh } from "./context";
import { Fold } from "./Fold";
import style from "./Tool.module.css";

/** Calls that were made one right after the other. */
export function ToolCalls({ calls }: { calls: readonly ToolPart[] }) {
  const { t } = useText();
  const beside = sideBySide(calls);
  return (
    <div role="group" aria-label={t.run.tool.calls(calls.length)}>
      {beside > 1 && (
        <p className={style["beside"]}>
          <Icon name="branch" size={12} />
          {t.run.tool.parallel(beside)}
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

const dots = {
  preparing: "running",
  called: "pending",
  running: "running",
  success: "completed",
  partial: "completed",
  failure: "failed",
  abandoned: "cancelled",
} as const;

/** A call of a tool: open while it runs, folded when it is done. */
function ToolCard({ call }: { call: ToolPart }) {
  const { t, format } = useText();
  const id = useId();
  const isFresh = useFresh(call.id);
  const isGoing = call.status === "running" || call.status === "preparing";
  const { open, toggle } = useFold(call.id, isGoing);
  const took = call.durationMs ?? (call.endedAt === undefined ? undefined : call.endedAt - call.startedAt);
  const line = lineOf(call);
  return (
    <li className={classes(style["card"], isFresh && style["fresh"])} data-part={call.id}>
      <button type="button" className={style["head"]} aria-expanded={open} aria-controls={id} onClick={toggle}>
        <StatusDot status={dots[call.status]} />
        <span className={style["name"]}>{call.name === "" ? t.run.tool.unnamed : call.name}</span>
        <span className={style["about"]}>{call.description ?? ""}</span>
        <span className="unseen">{t.run.tool.status[call.status]}</span>
        <span className={style["time"]}>
          {took !== undefined ? format.duration(took) : isGoing ? <Duration from={new Date(call.startedAt)} /> : t.run.tool.status[call.status]}
        </span>
        <Icon name="chevron" size={12} className={classes(style["chevron"], open && style["turned"])} />
      </button>
      {isGoing && call.progress !== undefined && (
        <progress className={style["progress"]} max={100} value={call.progress} aria-label={call.progressMessage ?? call.name} />
      )}
      {line !== undefined && <p className={classes(style["line"], call.status === "failure" && style["failed"])}>{line}</p>}
      <Fold open={open} id={id}>
        <ToolBody call={call} />
      </Fold>
    </li>
  );
}

/** The one line under a call's head that is worth reading without opening it. */
function lineOf(call: ToolPart): string | undefined {
  if (call.error !== undefined) return call.error.message;
  if (call.status === "running") return call.progressMessage;
  return undefined;
}

function ToolBody({ call }: { call: ToolPart }) {
  const { t } = useText();
  const words = t.run.tool;
  const raw = call.arguments === undefined || call.incomplete === true ? call.argumentsText : undefined;
  const hasArguments = typeof call.arguments === "object" && call.arguments !== null && Object.keys(call.arguments).length > 0;
  return (
    <div className={style["body"]}>
      {hasArguments && (
        <div>
          <p className={style["label"]}>{words.arguments}</p>
          <Values value={call.arguments} label={words.arguments} />
        </div>
      )}
      {raw !== undefined && raw !== "" && (
        <div>
          <p className={style["label"]}>{call.incomplete === true ? words.incomplete : words.arguments}</p>
          <pre tabIndex={0}>{raw}</pre>
        </div>
      )}
      {call.output !== undefined && call.output !== "" && (
        <div>
          <p className={style["label"]}>{words.output}</p>
          <pre tabIndex={0}>{tail(call.output)}</pre>
        </div>
      )}
      {call.result !== undefined && (
        <div>
          <p className={style["label"]}>{words.result}</p>
          {typeof call.result === "string" ? <pre tabIndex={0}>{tail(call.result)}</pre> : <JsonTree value={call.result} depth={2} label={words.result} />}
        </div>
      )}
      {call.error !== undefined && (
        <div>
          <p className={style["label"]}>{words.error}</p>
          <Values value={call.error} label={words.error} />
        </div>
      )}
    </div>
  );
}

const longOutput = 20_000;

/** Of a very long output, the end is what tells how it went; all of it is among the events. */
function tail(output: string): string {
  return output.length <= longOutput ? output : `…${output.slice(-longOutput)}`;
}
