import type { UseRunResult } from "@runwire/client/react";
import { useEffect, useRef, useState } from "react";
import { useText } from "../text";
import { Button, Duration, StatusDot, Time } from "../ui";
import { doing } from "./now";
import style from "./Run.module.css";

/** Screen readers are told at most this often what a run is doing. */
const announceEvery = 4000;

interface NowLineProps {
  run: UseRunResult;
  /** Whether it was asked to stop from here. */
  isStopping: boolean;
  onStop(): void;
}

/** What the run is doing now, in one line that stays in sight. */
export function NowLine({ run, isStopping, onStop }: NowLineProps) {
  const { t } = useText();
  const { view, connection } = run;
  const { words, step, at, over } = doing(view, t);
  const announced = useThrottled(run.isCaughtUp ? (step === undefined ? words : `${words}, ${t.run.now.inStep(step)}`) : "", announceEvery);
  if (!run.isCaughtUp) return <div className={style["now"]} />;
  const isAway = connection === "waiting" && !over;
  return (
    <div className={style["now"]} data-over={over || undefined}>
      <StatusDot status={view.status} />
      <span className={style["doing"]} title={words}>
        {words}
      </span>
      {step !== undefined && <span className={style["step"]}>{t.run.now.inStep(step)}</span>}
      {at !== undefined && (
        <span className={style["since"]}>{over ? <Time at={new Date(at)} /> : <Duration from={new Date(at)} />}</span>
      )}
      {isAway && <span className={style["away"]}>{t.run.now.away}</span>}
      {!over && (
        <Button size="small" icon="stop" busy={isStopping} onClick={onStop} className={style["stop"]}>
          {t.run.stop}
        </Button>
      )}
      <span className="unseen" role="status">
        {announced}
      </span>
    </div>
  );
}

/** Gives a text that changes at most once in a while, ending with the newest. */
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
