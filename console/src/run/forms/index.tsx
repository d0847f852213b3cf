import { ProblemError, type Decision, type Interaction, type NewAnswer } from "@runwire/client";
import { useEffect, useMemo, useRef, useState } from "react";
import { client } from "../../client";
import { useText } from "../../text";
import { ErrorAlert } from "../../ui";
import { serverErrors } from "./validate";
import { fieldsOf } from "./fields";
import { draftKey, storeDraft } from "./draftStorage";
import { OpenInteraction } from "./OpenInteraction";
import { ResolvedInteraction, type Resolution } from "./ResolvedInteraction";
import { useFormState } from "./useFormState";
import style from "./Form.module.css";

interface InteractionFormProps {
  interaction: Interaction;
  /** Called with the interaction once this person's answer is accepted. */
  onAnswered?: ((answered: Interaction) => void) | undefined;
  /** Whether the title is omitted, because the parent shows it. */
  untitled?: boolean;
}

/** An interaction: a form while it is open, its answer afterwards. */
export function InteractionForm({ interaction, onAnswered, untitled = false }: InteractionFormProps) {
  const { t } = useText();
  const isApproval = interaction.kind === "approval";
  const { schema, ui } = interaction;
  // The `approved` property of an approval is set by buttons, not by a field.
  const field = useMemo(() => fieldsOf(schema ?? {}, ui, isApproval ? ["approved"] : []), [schema, ui, isApproval]);
  const hasFields = schema !== undefined && !(field.kind === "group" && field.fields.length === 0);
  const key = draftKey(interaction.run_id, interaction.interaction_id);
  const [sending, setSending] = useState<Decision>();
  const [failed, setFailed] = useState<{ error: unknown; newAnswer: NewAnswer }>();
  const errorAlert = useRef<HTMLDivElement>(null);
  const [resolution, setResolution] = useState<Resolution>();
  const isOwnAnswer = useRef(false);
  const [, rerender] = useState(0);
  const validatedSchema = useMemo(() => (isApproval ? withoutApproved(schema) : schema), [schema, isApproval]);
  const state = useFormState(field, hasFields ? validatedSchema : undefined, key, sending !== undefined);

  // Disabled fields have lost the focus, and the form may be longer than the window.
  useEffect(() => {
    if (failed !== undefined) errorAlert.current?.focus();
  }, [failed]);

  const answer = resolution ?? interaction.answer ?? (interaction.status === "open" ? undefined : { decision: interaction.status });
  if (answer !== undefined) {
    const discardDraft = () => {
      storeDraft(key, undefined);
      isOwnAnswer.current = true;
      rerender((times) => times + 1);
    };
    const unsent = !isOwnAnswer.current && sending === undefined && state.isDirty ? state.value : undefined;
    return <ResolvedInteraction interaction={interaction} answer={answer} field={field} unsent={unsent} isMine={resolution !== undefined && isOwnAnswer.current} onForget={discardDraft} />;
  }

  const send = async (newAnswer: NewAnswer) => {
    setSending(newAnswer.decision);
    setFailed(undefined);
    // The stream may deliver the answer before this request returns.
    isOwnAnswer.current = true;
    try {
      const answered = await client.interactions.answer(interaction.run_id, interaction.interaction_id, newAnswer);
      storeDraft(key, undefined);
      if (answered.answer !== null) setResolution(answered.answer);
      onAnswered?.(answered);
    } catch (error) {
      isOwnAnswer.current = false;
      const accepted = acceptedAnswer(error);
      if (accepted !== undefined) setResolution(accepted);
      else if (error instanceof ProblemError && error.code === "invalid_answer" && error.problem.errors !== undefined) {
        state.setServerErrors(serverErrors(error.problem.errors, field));
      } else setFailed({ error, newAnswer });
    } finally {
      setSending(undefined);
    }
  };

  return (
    <OpenInteraction interaction={interaction} field={hasFields ? field : undefined} state={state} sending={sending} untitled={untitled} onAnswer={(newAnswer) => void send(newAnswer)}>
      {failed !== undefined && (
        <div ref={errorAlert} tabIndex={-1} className={style["failure"]}>
          <ErrorAlert error={failed.error} isUserAction onRetry={() => void send(failed.newAnswer)} />
        </div>
      )}
      <span className="visually-hidden" role="status">
        {sending === undefined ? "" : t.run.form.sending}
      </span>
    </OpenInteraction>
  );
}

/** Returns the accepted answer of a conflict error. */
function acceptedAnswer(error: unknown): Resolution | undefined {
  if (!(error instanceof ProblemError) || (error.code !== "interaction_closed" && error.code !== "run_closed")) return undefined;
  const answer = error.problem["answer"];
  return typeof answer === "object" && answer !== null && "decision" in answer ? (answer as Resolution) : undefined;
}

/** Removes `approved` from the required properties: the decision sets it. */
function withoutApproved(schema: unknown): unknown {
  if (typeof schema !== "object" || schema === null || !("required" in schema) || !Array.isArray(schema.required)) return schema;
  return { ...schema, required: schema.required.filter((name) => name !== "approved") };
}
