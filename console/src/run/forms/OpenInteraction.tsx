import type { Decision, Interaction, NewAnswer } from "@runwire/client";
import { useEffect, useId, useRef, useState, type FormEvent, type KeyboardEvent, type ReactNode } from "react";
import { useText } from "../../text";
import { Button, Icon, Markdown, Time } from "../../ui";
import type { Field } from "./fields";
import { FieldView } from "./FieldView";
import { FormContext } from "./formContext";
import { isObject, stringOf } from "./schema";
import type { FormState } from "./useFormState";
import { Values } from "./Values";
import style from "./Form.module.css";

interface OpenInteractionProps {
  interaction: Interaction;
  /** The fields, if the interaction has any. */
  field: Field | undefined;
  state: FormState;
  sending: Decision | undefined;
  untitled: boolean;
  onAnswer(answer: NewAnswer): void;
  children: ReactNode;
}

/** An open form or approval. */
export function OpenInteraction({ interaction, field, state, sending, untitled, onAnswer, children }: OpenInteractionProps) {
  const { t } = useText();
  const texts = t.run.form;
  const heading = useId();
  const isApproval = interaction.kind === "approval";
  const summary = useRef<HTMLDivElement>(null);
  const [failedSubmits, setFailedSubmits] = useState(0);
  const [isRejecting, setRejecting] = useState(false);
  const [reason, setReason] = useState("");

  // Focuses the summary after a failed submit, wherever the invalid field is.
  useEffect(() => {
    if (failedSubmits > 0) summary.current?.focus();
  }, [failedSubmits]);
  const wasSending = useRef(false);
  useEffect(() => {
    if (wasSending.current && sending === undefined) summary.current?.focus();
    wasSending.current = sending !== undefined;
  }, [sending]);

  const submit = () => {
    if (sending !== undefined) return;
    if (field !== undefined && !state.validate()) {
      setFailedSubmits((times) => times + 1);
      return;
    }
    const values = field === undefined ? undefined : state.value;
    if (isApproval) onAnswer({ decision: "approved", ...(values !== undefined && { values }) });
    else onAnswer({ decision: "submitted", values: values ?? {} });
  };
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    submit();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const isSubmit = event.key === "Enter" && (event.ctrlKey || event.metaKey) && !event.nativeEvent.isComposing;
    if (!isSubmit) return;
    event.preventDefault();
    submit();
  };

  const ui = isObject(interaction.ui) ? interaction.ui : {};
  const title = interaction.title ?? (isApproval && interaction.name !== undefined ? texts.mayCall(interaction.name) : texts.untitled[interaction.kind]);
  return (
    <form className={style["form"]} noValidate data-interaction tabIndex={-1} {...(untitled ? { "aria-label": title } : { "aria-labelledby": heading })} onSubmit={onSubmit} onKeyDown={onKeyDown}>
      {!untitled && (
        <div className={style["head"]}>
          <Icon name={isApproval ? "shield" : "form"} size={18} />
          <h2 id={heading}>{title}</h2>
        </div>
      )}
      {interaction.description !== undefined && <Markdown text={interaction.description} className={style["description"] ?? ""} />}
      {interaction.reason !== undefined && <p className={style["reason"]}>{interaction.reason}</p>}
      {interaction.arguments !== undefined && (
        <div className={style["arguments"]}>
          <p className={style["argumentsHead"]}>{interaction.name === undefined ? texts.arguments : <code>{interaction.name}</code>}</p>
          <Values value={interaction.arguments} label={texts.arguments} depth={expandDepth(interaction.arguments)} />
        </div>
      )}
      {field !== undefined && (
        <FormContext value={state.form}>
          <FieldView field={field} draft={state.draft} path={[]} pointer="" />
        </FormContext>
      )}
      {state.showsSummary && state.problems.length > 0 && (
        <div ref={summary} tabIndex={-1} role="alert" className={style["summary"]}>
          <p>{texts.invalidFields(state.problems.length)}</p>
          <ul>
            {state.problems.map((problem) => (
              <li key={problem.pointer}>
                {problem.id === undefined ? problem.title : <FieldLink id={problem.id}>{problem.title}</FieldLink>}
                {texts.problem(problem.text)}
              </li>
            ))}
          </ul>
        </div>
      )}
      {children}
      {isRejecting && (
        <label>
          <span className="field-label">{texts.rejectReason}</span>
          <textarea className="field" rows={2} autoFocus value={reason} onChange={(event) => setReason(event.target.value)} />
        </label>
      )}
      {/* A press must not move the focus: the error of a touched field would shift the button before the click. */}
      <div className={style["actions"]} onMouseDown={(event) => event.preventDefault()}>
        {isApproval ? (
          <ApprovalActions
            approveText={stringOf(ui["submit_text"]) ?? texts.approve}
            rejectText={stringOf(ui["cancel_text"]) ?? texts.reject}
            sending={sending}
            isRejecting={isRejecting}
            onRejecting={setRejecting}
            onReject={() => onAnswer({ decision: "rejected", ...(reason.trim() !== "" && { reason: reason.trim() }) })}
          />
        ) : (
          <>
            <Button type="submit" variant="primary" busy={sending === "submitted"} disabled={sending !== undefined}>
              {stringOf(ui["submit_text"]) ?? texts.submit}
            </Button>
            <Button variant="quiet" busy={sending === "cancelled"} disabled={sending !== undefined} onClick={() => onAnswer({ decision: "cancelled" })}>
              {stringOf(ui["cancel_text"]) ?? texts.dismiss}
            </Button>
          </>
        )}
        {interaction.expires_at !== null && (
          <span className={style["expiry"]}>
            <Icon name="clock" size={14} />
            <span>
              {texts.expires} <Time at={interaction.expires_at} />
            </span>
          </span>
        )}
      </div>
    </form>
  );
}

/** Returns the depth to expand: arguments to approve are fully visible unless they are huge. */
function expandDepth(value: unknown): number {
  return JSON.stringify(value).length < 10_000 ? 10 : 1;
}

interface ApprovalActionsProps {
  approveText: string;
  rejectText: string;
  sending: Decision | undefined;
  isRejecting: boolean;
  onRejecting(rejecting: boolean): void;
  onReject(): void;
}

/** Buttons of an approval; rejecting asks for a reason first. */
function ApprovalActions({ approveText, rejectText, sending, isRejecting, onRejecting, onReject }: ApprovalActionsProps) {
  const { t } = useText();
  if (isRejecting) {
    return (
      <>
        <Button variant="danger" busy={sending === "rejected"} disabled={sending !== undefined} onClick={onReject}>
          {rejectText}
        </Button>
        <Button variant="quiet" disabled={sending !== undefined} onClick={() => onRejecting(false)}>
          {t.run.form.back}
        </Button>
      </>
    );
  }
  return (
    <>
      <Button type="submit" variant="primary" busy={sending === "approved"} disabled={sending !== undefined}>
        {approveText}
      </Button>
      <Button variant="danger" disabled={sending !== undefined} onClick={() => onRejecting(true)}>
        {rejectText}
      </Button>
    </>
  );
}

function FieldLink({ id, children }: { id: string; children: string }) {
  const go = () => {
    const element = document.getElementById(id);
    const input = element?.matches("fieldset") ? element.querySelector<HTMLElement>("input, select, textarea, button") : element;
    input?.focus();
  };
  return (
    <button type="button" className={style["link"]} onClick={go}>
      {children}
    </button>
  );
}
