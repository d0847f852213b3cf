import { cursorOf, type RunwireEvent } from "@runwire/client";
import { useEffect, useState } from "react";
import { useText } from "../../text";
import { Button, Copy, ErrorNote, IconButton, JsonTree, Loading } from "../../ui";
import { commandOf } from "./command";
import { dialects } from "./dialects";
import { offsetOf } from "./EventRow";
import { framesOf, type RecordFrame } from "./framesOf";
import style from "./EventDetails.module.css";

interface EventDetailsProps {
  run: string;
  event: RunwireEvent;
  startedAt: number;
  onClose(): void;
  /** Shows only events of a type. */
  onType(type: string): void;
}

/** Shows one event whole: as it is, as its record was stored, and as it reads in every dialect. */
export function EventDetails({ run, event, startedAt, onClose, onType }: EventDetailsProps) {
  const { t, format } = useText();
  const [form, setForm] = useState("event");
  const at = new Date(event.at);
  const command = () =>
    commandOf({ origin: location.origin, run, dialect: form === "event" || form === "raw" ? "runwire" : form, framing: "sse", after: String(event.seq - 1) });
  return (
    <aside className={style["details"]} aria-label={t.inspect.details}>
      <header className={style["head"]}>
        <h2 className={style["type"]}>{event.type}</h2>
        <IconButton icon="cross" label={t.action.close} size="small" onClick={onClose} />
      </header>
      <dl className={style["facts"]}>
        <dt>{t.inspect.cursor}</dt>
        <dd className="figures">{cursorOf(event) ?? event.seq}</dd>
        <dt>{t.inspect.at}</dt>
        <dd className="figures">
          {format.exact(at)} <span className={style["faint"]}>{offsetOf(at.getTime() - startedAt)}</span>
        </dd>
        {event.step_id !== undefined && (
          <>
            <dt>{t.inspect.step}</dt>
            <dd>{event.step_id}</dd>
          </>
        )}
      </dl>
      <div className={style["acts"]}>
        <select className={`field ${style["form"] ?? ""}`} aria-label={t.inspect.showAs} value={form} onChange={(change) => setForm(change.target.value)}>
          <option value="event">{t.inspect.theEvent}</option>
          <option value="raw">{t.inspect.stored}</option>
          <optgroup label={t.inspect.inDialect}>
            {dialects.map((dialect) => (
              <option key={dialect} value={dialect}>
                {dialect}
              </option>
            ))}
          </optgroup>
        </select>
        <Copy text={command} label={t.inspect.curlFrom} />
        <Button size="small" variant="quiet" icon="filter" onClick={() => onType(event.type)}>
          {t.inspect.onlyType}
        </Button>
      </div>
      <div className={style["body"]} tabIndex={0} role="group" aria-label={t.inspect.content}>
        {form === "event" ? (
          <>
            <div className={style["copy"]}>
              <Copy text={() => JSON.stringify(event, null, 2)} />
            </div>
            <JsonTree key={cursorOf(event)} value={event} depth={4} label={event.type} />
          </>
        ) : (
          <Frames key={`${event.seq} ${form}`} run={run} seq={event.seq} form={form} />
        )}
      </div>
    </aside>
  );
}

/** Shows what an event's record is in another form, read from the server. */
function Frames({ run, seq, form }: { run: string; seq: number; form: string }) {
  const { t } = useText();
  const [frames, setFrames] = useState<RecordFrame[]>();
  const [error, setError] = useState<unknown>();
  const [tries, setTries] = useState(0);
  useEffect(() => {
    const abort = new AbortController();
    setError(undefined);
    framesOf(run, seq, form === "raw" ? { raw: true } : { dialect: form }, abort.signal)
      .then(setFrames)
      .catch((failure: unknown) => abort.signal.aborted || setError(failure));
    return () => abort.abort();
  }, [run, seq, form, tries]);
  if (error !== undefined) return <ErrorNote error={error} onRetry={() => setTries(tries + 1)} />;
  if (frames === undefined) return <Loading lines={3} />;
  if (frames.length === 0) return <p className={style["none"]}>{t.inspect.noFrame}</p>;
  return frames.map((frame) => (
    <div key={frame.cursor} className={style["frame"]}>
      <div className={style["copy"]}>
        <span className={`${style["faint"] ?? ""} figures`}>{frame.cursor}</span>
        <Copy text={frame.text} />
      </div>
      {form === "raw" || frame.value === undefined ? <pre className={style["exact"]}>{frame.text}</pre> : <JsonTree value={frame.value} depth={4} label={form} />}
    </div>
  ));
}
