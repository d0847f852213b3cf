import { cursorOf, DIALECTS, type RunwireEvent } from "@runwire/client";
import { useEffect, useState } from "react";
import { useText } from "../../text";
import { Button, CopyButton, ErrorAlert, IconButton, JsonTree, Loading } from "../../ui";
import { shellCommand } from "./shellCommand";
import { formatOffset } from "./EventRow";
import { loadRecordFrames, type RecordFrame } from "./loadRecordFrames";
import style from "./EventDetails.module.css";

interface EventDetailsProps {
  run: string;
  event: RunwireEvent;
  startedAt: number;
  onClose(): void;
  /** Filters the events by a type. */
  onFilterType(type: string): void;
}

/** Details of an event: as JSON, as its stored record, and in every dialect. */
export function EventDetails({ run, event, startedAt, onClose, onFilterType }: EventDetailsProps) {
  const { t, format } = useText();
  const [representation, setRepresentation] = useState("event");
  const at = new Date(event.at);
  const command = () =>
    shellCommand({ origin: location.origin, run, dialect: representation === "event" || representation === "raw" ? "runwire" : representation, framing: "sse", after: String(event.seq - 1) });
  return (
    <aside className={style["details"]} aria-label={t.inspect.details}>
      <header className={style["head"]}>
        <h2 className={style["type"]}>{event.type}</h2>
        <IconButton icon="cross" label={t.action.close} size="small" onClick={onClose} />
      </header>
      <dl className={style["metadata"]}>
        <dt>{t.inspect.cursor}</dt>
        <dd className="tabular-nums">{cursorOf(event) ?? event.seq}</dd>
        <dt>{t.inspect.at}</dt>
        <dd className="tabular-nums">
          {format.exact(at)} <span className={style["faint"]}>{formatOffset(at.getTime() - startedAt)}</span>
        </dd>
        {event.step_id !== undefined && (
          <>
            <dt>{t.inspect.step}</dt>
            <dd>{event.step_id}</dd>
          </>
        )}
      </dl>
      <div className={style["actions"]}>
        <select className={`field ${style["format"] ?? ""}`} aria-label={t.inspect.showAs} value={representation} onChange={(change) => setRepresentation(change.target.value)}>
          <option value="event">{t.inspect.theEvent}</option>
          <option value="raw">{t.inspect.stored}</option>
          <optgroup label={t.inspect.inDialect}>
            {DIALECTS.map((dialect) => (
              <option key={dialect} value={dialect}>
                {dialect}
              </option>
            ))}
          </optgroup>
        </select>
        <CopyButton text={command} label={t.inspect.curlFrom} />
        <Button size="small" variant="quiet" icon="filter" onClick={() => onFilterType(event.type)}>
          {t.inspect.onlyType}
        </Button>
      </div>
      <div className={style["body"]} tabIndex={0} role="group" aria-label={t.inspect.content}>
        {representation === "event" ? (
          <>
            <div className={style["copy"]}>
              <CopyButton text={() => JSON.stringify(event, null, 2)} />
            </div>
            <JsonTree key={cursorOf(event)} value={event} depth={4} label={event.type} />
          </>
        ) : (
          <RecordFrames key={`${event.seq} ${representation}`} run={run} seq={event.seq} representation={representation} />
        )}
      </div>
    </aside>
  );
}

/** The frames of an event's record in another representation, loaded from the server. */
function RecordFrames({ run, seq, representation }: { run: string; seq: number; representation: string }) {
  const { t } = useText();
  const [frames, setFrames] = useState<RecordFrame[]>();
  const [error, setError] = useState<unknown>();
  const [attempts, setAttempts] = useState(0);
  useEffect(() => {
    const abort = new AbortController();
    setError(undefined);
    loadRecordFrames(run, seq, representation === "raw" ? { raw: true } : { dialect: representation }, abort.signal)
      .then(setFrames)
      .catch((failure: unknown) => abort.signal.aborted || setError(failure));
    return () => abort.abort();
  }, [run, seq, representation, attempts]);
  if (error !== undefined) return <ErrorAlert error={error} onRetry={() => setAttempts(attempts + 1)} />;
  if (frames === undefined) return <Loading lines={3} />;
  if (frames.length === 0) return <p className={style["noFrame"]}>{t.inspect.noFrame}</p>;
  return frames.map((frame) => (
    <div key={frame.cursor} className={style["frame"]}>
      <div className={style["copy"]}>
        <span className={`${style["faint"] ?? ""} tabular-nums`}>{frame.cursor}</span>
        <CopyButton text={frame.text} />
      </div>
      {representation === "raw" || frame.value === undefined ? <pre className={style["raw"]}>{frame.text}</pre> : <JsonTree value={frame.value} depth={4} label={representation} />}
    </div>
  ));
}
