import type { Answer, Decision, Interaction } from "@runwire/client";
import { useEffect, useRef } from "react";
import { useText } from "../../text";
import { Badge, Button, Icon, type Tone } from "../../ui";
import type { Field } from "./fields";
import { Values } from "./Values";
import style from "./Form.module.css";

const tones: Record<Decision, Tone> = {
  submitted: "good",
  approved: "good",
  rejected: "bad",
  cancelled: "quiet",
  expired: "quiet",
};

/** Decision that resolved an interaction. */
export type Resolution = Pick<Answer, "decision" | "values" | "reason" | "by">;

interface ResolvedInteractionProps {
  interaction: Interaction;
  answer: Resolution;
  field: Field | undefined;
  /** Draft of this person when another answer was accepted. */
  unsent?: unknown;
  /** Whether this person has just answered it, so that focus moves here from the form. */
  isMine: boolean;
  onForget(): void;
}

/** A resolved interaction with its answer, and the unsent draft if there is one. */
export function ResolvedInteraction({ interaction, answer, field, unsent, isMine, onForget }: ResolvedInteractionProps) {
  const { t } = useText();
  const element = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (isMine) element.current?.focus({ preventScroll: true });
  }, [isMine]);
  const texts = t.run.form;
  const unsentDraft = unsent === undefined ? null : (
    <div className={style["unsent"]} role="status">
      <p>{answer.by === undefined ? texts.answeredByOther : texts.answeredBy(answer.by)}</p>
      <details>
        <summary>{texts.unsent}</summary>
        <Values value={unsent} field={field} label={texts.unsent} />
      </details>
      <Button size="small" variant="quiet" onClick={onForget}>
        {texts.discardDraft}
      </Button>
    </div>
  );
  const values = hasValues(answer.values) && answer.decision !== "cancelled";
  return (
    <div ref={element} tabIndex={-1} className={style["resolved"]}>
      <div className={style["resolvedHeader"]}>
        <Icon name={interaction.kind === "approval" ? "shield" : "form"} />
        <span className={style["resolvedTitle"]}>{interaction.title ?? interaction.name ?? texts.untitled[interaction.kind]}</span>
        <Badge tone={tones[answer.decision]}>{texts.decision[answer.decision]}</Badge>
        {answer.by !== undefined && <span className={style["by"]}>{texts.by(answer.by)}</span>}
      </div>
      {answer.reason !== undefined && answer.reason !== "" && <p className={style["reasonGiven"]}>{texts.because(answer.reason)}</p>}
      {interaction.arguments !== undefined && (
        <details className={style["details"]}>
          <summary>{texts.arguments}</summary>
          <Values value={interaction.arguments} label={texts.arguments} />
        </details>
      )}
      {values && <Values value={answer.values} field={field} label={texts.answer} />}
      {unsentDraft}
    </div>
  );
}

function hasValues(values: unknown): boolean {
  return typeof values === "object" && values !== null && Object.keys(values).length > 0;
}
