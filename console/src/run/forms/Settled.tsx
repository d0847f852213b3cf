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

/** What became of a question. */
export type Settlement = Pick<Answer, "decision" | "values" | "reason" | "by">;

interface SettledProps {
  interaction: Interaction;
  answer: Settlement;
  field: Field | undefined;
  /** What this person had typed when somebody else's answer won. */
  unsent?: unknown;
  /** Whether this person has just answered it: focus was in the form that is gone, and stays here. */
  isMine: boolean;
  onForget(): void;
}

/** Shows the answer that a question has, and what it overtook. */
export function Settled({ interaction, answer, field, unsent, isMine, onForget }: SettledProps) {
  const { t } = useText();
  const block = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (isMine) block.current?.focus({ preventScroll: true });
  }, [isMine]);
  const words = t.run.form;
  const kept = unsent === undefined ? null : (
    <div className={style["overtaken"]} role="status">
      <p>{answer.by === undefined ? words.overtaken : words.overtakenBy(answer.by)}</p>
      <details>
        <summary>{words.unsent}</summary>
        <Values value={unsent} field={field} label={words.unsent} />
      </details>
      <Button size="small" variant="quiet" onClick={onForget}>
        {words.forget}
      </Button>
    </div>
  );
  const values = hasValues(answer.values) && answer.decision !== "cancelled";
  return (
    <div ref={block} tabIndex={-1} className={style["settled"]}>
      <div className={style["settledHead"]}>
        <Icon name={interaction.kind === "approval" ? "shield" : "form"} />
        <span className={style["settledTitle"]}>{interaction.title ?? interaction.name ?? words.untitled[interaction.kind]}</span>
        <Badge tone={tones[answer.decision]}>{words.decision[answer.decision]}</Badge>
        {answer.by !== undefined && <span className={style["by"]}>{words.by(answer.by)}</span>}
      </div>
      {answer.reason !== undefined && answer.reason !== "" && <p className={style["given"]}>{words.because(answer.reason)}</p>}
      {interaction.arguments !== undefined && (
        <details className={style["done"]}>
          <summary>{words.arguments}</summary>
          <Values value={interaction.arguments} label={words.arguments} />
        </details>
      )}
      {values && <Values value={answer.values} field={field} label={words.answer} />}
      {kept}
    </div>
  );
}

function hasValues(values: unknown): boolean {
  return typeof values === "object" && values !== null && Object.keys(values).length > 0;
}
