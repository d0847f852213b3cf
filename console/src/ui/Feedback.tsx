import { Component, type ReactNode } from "react";
import { NetworkError, ProblemError } from "@runwire/client";
import { useText, type Dictionary } from "../text";
import { Button } from "./Button";
import { classNames } from "./classNames";
import { Icon, type IconName } from "./Icon";
import style from "./Feedback.module.css";

interface EmptyProps {
  icon?: IconName;
  title: string;
  detail?: string;
  /** Actions. */
  children?: ReactNode;
}

/** Placeholder of an empty list or page. */
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

interface ErrorAlertProps {
  error: unknown;
  /** Whether the error is of an action of the person, which is not retried automatically. */
  isUserAction?: boolean;
  onRetry?: (() => void) | undefined;
  className?: string | undefined;
}

/** An error with its code and hint, or that the server is unreachable. */
export function ErrorAlert({ error, isUserAction = false, onRetry, className }: ErrorAlertProps) {
  const { t } = useText();
  const description = describe(error, t);
  const isUnreachable = error instanceof NetworkError;
  return (
    <div role="alert" className={classNames(style["error"], className)}>
      <Icon name="warning" className={style["errorIcon"]} />
      <div className={style["errorBody"]}>
        <p className={style["errorTitle"]}>{isUnreachable ? t.error.unreachable : (description.title ?? t.error.title)}</p>
        <p className={style["errorDetail"]}>{isUnreachable ? (isUserAction ? t.error.unsentDetail : t.error.unreachableDetail) : renderBackticks(description.detail)}</p>
        {description.hint && <p className={style["errorDetail"]}>{renderBackticks(description.hint)}</p>}
        {description.code && (
          <p className={style["errorCode"]}>
            {t.error.code} <code>{description.code}</code>
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

/** Renders texts in backticks as code. */
function renderBackticks(text: string): ReactNode {
  return text.split("`").map((part, index) => (index % 2 === 0 ? part : <code key={index}>{part}</code>));
}

/** Returns the localized text of a known error code, or the server's text. */
function describe(error: unknown, t: Dictionary): { title?: string | undefined; detail: string; hint?: string | undefined; code?: string | undefined } {
  if (error instanceof ProblemError) {
    const known = (t.error.known as Partial<Record<string, readonly string[]>>)[error.code ?? ""];
    if (known !== undefined) return { title: known[0], detail: known[1] ?? "", code: error.code };
    return { title: error.title, detail: error.message, hint: error.problem.hint, code: error.code };
  }
  return { detail: error instanceof Error ? error.message : String(error) };
}

/** Placeholder of a line that is loading. */
export function Skeleton({ width = "100%", height = 14 }: { width?: number | string; height?: number }) {
  return <span className={style["skeleton"]} style={{ width, height }} aria-hidden="true" />;
}

/** Placeholder of content that is loading. */
export function Loading({ lines = 4 }: { lines?: number }) {
  const { t } = useText();
  return (
    <div className={style["loading"]} role="status">
      <span className="visually-hidden">{t.loading}</span>
      {Array.from({ length: lines }, (_, line) => (
        <Skeleton key={line} width={`${88 - ((line * 29) % 47)}%`} />
      ))}
    </div>
  );
}

function RenderError({ error, onRetry }: { error: unknown; onRetry(): void }) {
  const { t } = useText();
  return (
    <section className={style["crashed"]} aria-label={t.error.crashed}>
      <p>{t.error.crashed}</p>
      <ErrorAlert error={error} onRetry={onRetry} />
    </section>
  );
}

/** Error boundary of a part of the page. A new `resetKey` renders it again. */
export class ErrorBoundary extends Component<{ children: ReactNode; resetKey: string }, { error: unknown; resetKey: string }> {
  override state = { error: undefined as unknown, resetKey: this.props.resetKey };

  static getDerivedStateFromError(error: unknown) {
    return { error };
  }

  static getDerivedStateFromProps(props: { resetKey: string }, state: { resetKey: string }) {
    return props.resetKey === state.resetKey ? null : { error: undefined, resetKey: props.resetKey };
  }

  override render() {
    if (this.state.error === undefined) return this.props.children;
    return <RenderError error={this.state.error} onRetry={() => this.setState({ error: undefined })} />;
  }
}
