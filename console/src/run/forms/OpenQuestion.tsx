import type { Decision, Interaction, NewAnswer } from "@runwire/client";
import { useEffect, useId, useRef, useState, type FormEvent, type KeyboardEvent, type ReactNode } from "react";
import { useText } from "../../text";
import { Button, Icon, Markdown, Time } from "../../ui";
import type { Field } from "./fields";
import { FieldView } from "./FieldView";
import { FormContext } from "./form-context";
import { isObject, textOf } from "./schema";
import type { FormState } from "./useFormState";
import { Values } from "./Values";
import style from "./Form.module.css";

interface OpenQuestionProps {
  interaction: Interaction;
  /** The fields, if the question has any. */
  field: Field | undefined;
  state: FormState;
  sending: Decision | undefined;
  untitled: boolean;
  onAnswer(answer: NewAnswer): void;
  children: ReactNode;
}

/** A form or an approval that waits for a person. */
export function OpenQuestion({ interaction, field, state, sending, untitled, onAnswer, children }: OpenQuestionProps) {
  const { t } = useText();
  const words = t.run.form;
  const heading = useId();
  const isApproval = interaction.kind === "approval";
  const summary = useRef<HTMLDivElement>(null);
  const [refusals, setRefusals] = useState(0);
  const [isRejecting, setRejecting] = useState(false);
  const [reason, setReason] = useState("");

  // Whoever sent it must learn that it was not taken, wherever the problem is.
  useEffect(() => {
    if (refusals > 0) summary.current?.focus();
  }, [refusals]);
  const wasSending = useRef(false);
  useEffect(() => {
    if (wasSending.current && sending === undefined) summary.current?.focus();
    wasSending.current = sending !== undefined;
  }, [sending]);

  const submit = () => {
    if (sending !== undefined) return;
    if (field !== undefined && !state.ready()) {
      setRefusals((times) => times + 1);
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
    const wanted = event.key === "Enter" && (event.ctrlKey || event.metaKey) && !event.nativeEvent.isComposing;
    if (!wanted) return;
    event.preventDefault();
    submit();
  };

  const ui = isObject(interaction.ui) ? interaction.ui : {};
  const title = interaction.title ?? (isApproval && interaction.name !== undefined ? words.mayCall(interaction.name) : words.untitled[interaction.kind]);
  return (
    <form className={style["form"]} noValidate data-question tabIndex={-1} {...(untitled ? { "aria-label": title } : { "aria-labelledby": heading })} onSubmit={onSubmit} onKeyDown={onKeyDown}>
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
          <p className={style["argumentsHead"]}>{interaction.name === undefined ? words.arguments : <code>{interaction.name}</code>}</p>
          <Values value={interaction.arguments} label={words.arguments} depth={openLevels(interaction.arguments)} />
        </div>
      )}
      {field !== undefined && (
        <FormContext value={state.form}>
          <FieldView field={field} draft={state.draft} path={[]} pointer="" />
        </FormContext>
      )}
      {state.told && state.problems.length > 0 && (
        <div ref={summary} tabIndex={-1} role="alert" className={style["summary"]}>
          <p>{words.mend(state.problems.length)}</p>
          <ul>
            {state.problems.map((problem) => (
              <li key={problem.pointer}>
                {problem.id === undefined ? problem.title : <FieldLink id={problem.id}>{problem.title}</FieldLink>}
                {words.problem(problem.words)}
              </li>
            ))}
          </ul>
        </div>
      )}
      {children}
      {isRejecting && (
        <label>
          <span className="field-label">{words.rejectReason}</span>
          <textarea className="field" rows={2} autoFocus value={reason} onChange={(event) => setReason(event.target.value)} />
        </label>
      )}
      {/* A press must not take focus from a field: what is told once it was left would move the button away from under it. */}
      <div className={style["actions"]} onMouseDown={(event) => event.preventDefault()}>
        {isApproval ? (
          <ApprovalActions
            approveText={textOf(ui["submit_text"]) ?? words.approve}
            rejectText={textOf(ui["cancel_text"]) ?? words.reject}
            sending={sending}
            isRejecting={isRejecting}
            onRejecting={setRejecting}
            onReject={() => onAnswer({ decision: "rejected", ...(reason.trim() !== "" && { reason: reason.trim() }) })}
          />
        ) : (
          <>
            <Button type="submit" variant="primary" busy={sending === "submitted"} disabled={sending !== undefined}>
              {textOf(ui["submit_text"]) ?? words.submit}
            </Button>
            <Button variant="quiet" busy={sending === "cancelled"} disabled={sending !== undefined} onClick={() => onAnswer({ decision: "cancelled" })}>
              {textOf(ui["cancel_text"]) ?? words.dismiss}
            </Button>
          </>
        )}
        {interaction.expires_at !== null && (
          <span className={style["expiry"]}>
            <Icon name="clock" size={14} />
            <span>
              {words.expires} <Time at={interaction.expires_at} />
            </span>
          </span>
        )}
      </div>
    </form>
  );
}

/** Whoever approves should see what, not that there is more; only what is huge stays folded. */
function openLevels(value: unknown): number {
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

/** Approves at once; rejects after a chance to say why. */
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
