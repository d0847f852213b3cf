import type { UseRunResult } from "@runwire/client/react";
import { useEffect, useRef, useState } from "react";
import { useText } from "../text";
import { Button, Duration, StatusDot, Time } from "../ui";
import { operationText } from "./operation";
import style from "./Run.module.css";

/** Minimum interval between two announcements to screen readers, in milliseconds. */
const announceEvery = 4000;

interface OperationLineProps {
  run: UseRunResult;
  /** Whether cancellation was requested on this page. */
  isStopping: boolean;
  onStop(): void;
}

/** Shows the run's current operation in a sticky line. */
export function OperationLine({ run, isStopping, onStop }: OperationLineProps) {
  const { t } = useText();
  const { view, connection } = run;
  const { text, step, at, isOver } = operationText(view, t);
  const announced = useThrottled(run.isCaughtUp ? (step === undefined ? text : `${text}, ${t.run.operation.inStep(step)}`) : "", announceEvery);
  if (!run.isCaughtUp) return <div className={style["operation"]} />;
  const isReconnecting = connection === "waiting" && !isOver;
  return (
    <div className={style["operation"]} data-over={isOver || undefined}>
      <StatusDot status={view.status} />
      <span className={style["text"]} title={text}>
        {text}
      </span>
      {step !== undefined && <span className={style["step"]}>{t.run.operation.inStep(step)}</span>}
      {at !== undefined && (
        <span className={style["since"]}>{isOver ? <Time at={new Date(at)} /> : <Duration from={new Date(at)} />}</span>
      )}
      {isReconnecting && <span className={style["reconnecting"]}>{t.run.operation.reconnecting}</span>}
      {!isOver && (
        <Button size="small" icon="stop" busy={isStopping} onClick={onStop} className={style["stop"]}>
          {t.run.stop}
        </Button>
      )}
      <span className="visually-hidden" role="status">
        {announced}
      </span>
    </div>
  );
}

/** Returns a throttled text; the newest one always follows. */
function useThrottled(text: string, every: number): string {
  const [shown, setShown] = useState(text);
  const last = useRef(0);
  useEffect(() => {
    const wait = Math.max(0, last.current + every - Date.now());
    const timer = setTimeout(() => {
      last.current = Date.now();
      setShown(text);
    }, wait);
    return () => clearTimeout(timer);
  }, [text, every]);
  return shown;
}
