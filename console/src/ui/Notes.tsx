import { Component, type ReactNode } from "react";
import { NetworkError, ProblemError } from "@runwire/client";
import { useText, type Dictionary } from "../text";
import { Button } from "./Button";
import { classes } from "./classes";
import { Icon, type IconName } from "./Icon";
import style from "./Notes.module.css";

interface EmptyProps {
  icon?: IconName;
  title: string;
  detail?: string;
  /** What to do about it. */
  children?: ReactNode;
}

/** Says that there is nothing here, and what would be. */
export function Empty({ icon, title, detail, children }: EmptyProps) {
  return (
    <div className={style["empty"]}>
      {icon && <Icon name={icon} size={28} className={style["emptyIcon"]} />}
      <p className={style["emptyTitle"]}>{title}</p>
      {detail && <p className={style["emptyDetail"]}>{detail}</p>}
      {children && <div className={style["emptyActions"]}>{children}</div>}
    </div>
  );
}

interface ErrorNoteProps {
  error: unknown;
  /** Whether it was the person who wanted something: that is not done by itself later. */
  wanted?: boolean;
  onRetry?: (() => void) | undefined;
  className?: string | undefined;
}

/** Says what went wrong: a problem with its code and what to do, or that the server is away. */
export function ErrorNote({ error, wanted = false, onRetry, className }: ErrorNoteProps) {
  const { t } = useText();
  const told = describe(error, t);
  const away = error instanceof NetworkError;
  return (
    <div role="alert" className={classes(style["error"], className)}>
      <Icon name="warning" className={style["errorIcon"]} />
      <div className={style["errorBody"]}>
        <p className={style["errorTitle"]}>{away ? t.error.unreachable : (told.title ?? t.error.title)}</p>
        <p className={style["errorDetail"]}>{away ? (wanted ? t.error.unsentDetail : t.error.unreachableDetail) : withCode(told.detail)}</p>
        {told.hint && <p className={style["errorDetail"]}>{withCode(told.hint)}</p>}
        {told.code && (
          <p className={style["errorCode"]}>
            {t.error.code} <code>{told.code}</code>
          </p>
        )}
      </div>
      {onRetry && (
        <Button size="small" icon="retry" onClick={onRetry}>
          {t.action.retry}
        </Button>
      )}
    </div>
  );
}

/** The server marks names with backticks. */
function withCode(text: string): ReactNode {
  return text.split("`").map((piece, at) => (at % 2 === 0 ? piece : <code key={at}>{piece}</code>));
}

/** Puts what is known into the person's language; anything else is told in the server's own words. */
function describe(error: unknown, t: Dictionary): { title?: string | undefined; detail: string; hint?: string | undefined; code?: string | undefined } {
  if (error instanceof ProblemError) {
    const known = (t.error.known as Partial<Record<string, readonly string[]>>)[error.code ?? ""];
    if (known !== undefined) return { title: known[0], detail: known[1] ?? "", code: error.code };
    return { title: error.title, detail: error.message, hint: error.problem.hint, code: error.code };
  }
  return { detail: error instanceof Error ? error.message : String(error) };
}

/** A grey place where something will stand. */
export function Skeleton({ width = "100%", height = 14 }: { width?: number | string; height?: number }) {
  return <span className={style["skeleton"]} style={{ width, height }} aria-hidden="true" />;
}

/** Several grey lines, and one word for screen readers. */
export function Loading({ lines = 4 }: { lines?: number }) {
  const { t } = useText();
  return (
    <div className={style["loading"]} role="status">
      <span className="unseen">{t.loading}</span>
      {Array.from({ length: lines }, (_, line) => (
        <Skeleton key={line} width={`${88 - ((line * 29) % 47)}%`} />
      ))}
    </div>
  );
}

function Crashed({ error, onRetry }: { error: unknown; onRetry(): void }) {
  const { t } = useText();
  return (
    <section className={style["crashed"]} aria-label={t.error.crashed}>
      <p>{t.error.crashed}</p>
      <ErrorNote error={error} onRetry={onRetry} />
    </section>
  );
}

/** Keeps a failure to draw one part from taking the page with it. Another `of` tries again. */
export class Boundary extends Component<{ children: ReactNode; of: string }, { error: unknown; of: string }> {
  override state = { error: undefined as unknown, of: this.props.of };

  static getDerivedStateFromError(error: unknown) {
    return { error };
  }

  static getDerivedStateFromProps(props: { of: string }, state: { of: string }) {
    return props.of === state.of ? null : { error: undefined, of: props.of };
  }

  override render() {
    if (this.state.error === undefined) return this.props.children;
    return <Crashed error={this.state.error} onRetry={() => this.setState({ error: undefined })} />;
  }
}
