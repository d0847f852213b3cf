import type { ReactNode } from "react";
import { useText } from "../text";
import { classNames } from "./classNames";
import style from "./Status.module.css";

/** Status of a run. */
export type RunStatus = "pending" | "running" | "suspended" | "completed" | "failed" | "cancelled";

/** Semantic colour of a status. */
export type Tone = "good" | "warn" | "bad" | "live" | "quiet";

/** Tone of each status. */
export const toneOf: Record<RunStatus, Tone> = {
  pending: "quiet",
  running: "live",
  suspended: "warn",
  completed: "good",
  failed: "bad",
  cancelled: "quiet",
};

const shapes: Record<RunStatus, string> = {
  pending: "",
  running: "",
  suspended: "M5.2 4.5v5M8.8 4.5v5",
  completed: "m4.2 7.2 2 2 3.7-4.2",
  failed: "m5 5 4 4m0-4-4 4",
  cancelled: "M4.5 7h5",
};

/** Icon of a status; shapes differ too, not colours alone. */
export function StatusDot({ status, size = 14 }: { status: RunStatus; size?: number }) {
  return (
    <svg
      className={classNames(style["dot"], style[toneOf[status]], status === "running" && style["running"])}
      width={size}
      height={size}
      viewBox="0 0 14 14"
      aria-hidden="true"
    >
      {status === "running" ? (
        <>
          <circle cx="7" cy="7" r="5.5" className={style["track"]} />
          <path d="M7 1.5A5.5 5.5 0 0 1 12.5 7" className={style["arc"]} />
          <circle cx="7" cy="7" r="2" className={style["core"]} />
        </>
      ) : status === "pending" ? (
        <circle cx="7" cy="7" r="5.3" className={style["hollow"]} />
      ) : (
        <>
          <circle cx="7" cy="7" r="6.5" className={style["disc"]} />
          <path d={shapes[status]} className={style["mark"]} />
        </>
      )}
    </svg>
  );
}

/** Status of a run with its label; `long` uses the long label. */
export function Status({ status, long = false }: { status: RunStatus; long?: boolean }) {
  const { t } = useText();
  return (
    <span className={classNames(style["status"], style[toneOf[status]])}>
      <StatusDot status={status} />
      {long ? t.status[status] : t.statusShort[status]}
    </span>
  );
}

/** A short label with a background. */
export function Badge({ tone = "quiet", children, className }: { tone?: Tone; children: ReactNode; className?: string }) {
  return <span className={classNames(style["badge"], style[tone], className)}>{children}</span>;
}
