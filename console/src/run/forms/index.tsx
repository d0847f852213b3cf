import { ProblemError, type Decision, type Interaction, type NewAnswer } from "@runwire/client";
import { useEffect, useMemo, useRef, useState } from "react";
import { client } from "../../client";
import { useText } from "../../text";
import { ErrorNote } from "../../ui";
import { toldByServer } from "./check";
import { fieldsOf } from "./fields";
import { draftKey, keepDraft } from "./kept";
import { OpenQuestion } from "./OpenQuestion";
import { Settled, type Settlement } from "./Settled";
import { useFormState } from "./useFormState";
import style from "./Form.module.css";

interface InteractionFormProps {
  interaction: Interaction;
  /** Is told the question with its answer, once this person's answer has won. */
  onAnswered?: ((answered: Interaction) => void) | undefined;
  /** Whether the question's title is left to what is around it. */
  untitled?: boolean;
}

/** A question to a person: to be answered while it is open, with its answer afterwards. */
export function InteractionForm({ interaction, onAnswered, untitled = false }: InteractionFormProps) {
  const { t } = useText();
  const isApproval = interaction.kind === "approval";
  const { schema, ui } = interaction;
  // An approval's decision is its `approved`: buttons ask for it, not a field.
  const field = useMemo(() => fieldsOf(schema ?? {}, ui, isApproval ? ["approved"] : []), [schema, ui, isApproval]);
  const isAsking = schema !== undefined && !(field.kind === "group" && field.fields.length === 0);
  const key = draftKey(interaction.run_id, interaction.interaction_id);
  const [sending, setSending] = useState<Decision>();
  const [failed, setFailed] = useState<{ error: unknown; given: NewAnswer }>();
  const note = useRef<HTMLDivElement>(null);
  const [settled, setSettled] = useState<Settlement>();
  const mine = useRef(false);
  const [, redraw] = useState(0);
  const checked = useMemo(() => (isApproval ? withoutApproved(schema) : schema), [schema, isApproval]);
  const state = useFormState(field, isAsking ? checked : undefined, key, sending !== undefined);

  // Its fields were locked while it was sent, so nothing has focus; and the form may be longer than the window.
  useEffect(() => {
    if (failed !== undefined) note.current?.focus();
  }, [failed]);

  const answer = settled ?? interaction.answer ?? (interaction.status === "open" ? undefined : { decision: interaction.status });
  if (answer !== undefined) {
    const forget = () => {
      keepDraft(key, undefined);
      mine.current = true;
      redraw((times) => times + 1);
    };
    const unsent = !mine.current && sending === undefined && state.dirty ? state.value : undefined;
    return <Settled interaction={interaction} answer={answer} field={field} unsent={unsent} isMine={settled !== undefined && mine.current} onForget={forget} />;
  }

  const send = async (given: NewAnswer) => {
    setSending(given.decision);
    setFailed(undefined);
    // The stream may tell the answer before this request returns.
    mine.current = true;
    try {
      const answered = await client.interactions.answer(interaction.run_id, interaction.interaction_id, given);
      keepDraft(key, undefined);
      if (answered.answer !== null) setSettled(answered.answer);
      onAnswered?.(answered);
    } catch (caught) {
      mine.current = false;
      const won = wonBy(caught);
      if (won !== undefined) setSettled(won);
      else if (caught instanceof ProblemError && caught.code === "invalid_answer" && caught.problem.errors !== undefined) {
        state.refuse(toldByServer(caught.problem.errors, field));
      } else setFailed({ error: caught, given });
    } finally {
      setSending(undefined);
    }
  };

  return (
    <OpenQuestion interaction={interaction} field={isAsking ? field : undefined} state={state} sending={sending} untitled={untitled} onAnswer={(given) => void send(given)}>
      {failed !== undefined && (
        <div ref={note} tabIndex={-1} className={style["failure"]}>
          <ErrorNote error={failed.error} wanted onRetry={() => void send(failed.given)} />
        </div>
      )}
      <span className="unseen" role="status">
        {sending === undefined ? "" : t.run.form.sending}
      </span>
    </OpenQuestion>
  );
}

/** Reads the answer that won from a refusal. */
function wonBy(error: unknown): Settlement | undefined {
  if (!(error instanceof ProblemError) || (error.code !== "interaction_closed" && error.code !== "run_closed")) return undefined;
  const answer = error.problem["answer"];
  return typeof answer === "object" && answer !== null && "decision" in answer ? (answer as Settlement) : undefined;
}

/** The decision fills in `approved`, so that it cannot be missing. */
function withoutApproved(schema: unknown): unknown {
  if (typeof schema !== "object" || schema === null || !("required" in schema) || !Array.isArray(schema.required)) return schema;
  return { ...schema, required: schema.required.filter((name) => name !== "approved") };
}
