import { lazy, Suspense, useId, useState } from "react";
import type { Interaction } from "@runwire/client";
import { Link } from "../router";
import { useText } from "../text";
import { Badge, Button, Icon, Loading, Time } from "../ui";
import { keyOf } from "./useListedInteractions";
import style from "./InboxPage.module.css";

const InteractionForm = lazy(async () => ({ default: (await import("../run/forms")).InteractionForm }));

interface InteractionCardProps {
  interaction: Interaction;
  /** Whether the form is expanded initially. */
  expanded: boolean;
  onAnswered(): void;
}

/** Card of an interaction with its form. */
export function InteractionCard({ interaction, expanded, onAnswered }: InteractionCardProps) {
  const { t, format } = useText();
  const [toggled, setToggled] = useState<boolean>();
  const formId = useId();
  const { kind, status } = interaction;
  const isOpen = status === "open";
  const isExpanded = toggled ?? (expanded || !isOpen);
  const title =
    interaction.title ?? (kind === "form" ? t.inbox.formUntitled : t.inbox.approvalUntitled(interaction.name ?? interaction.interaction_id));
  return (
    <li className={style["card"]}>
      <header className={style["head"]}>
        <Icon name={kind === "form" ? "form" : "shield"} size={18} className={isOpen ? style["waiting"] : style["done"]} />
        <h2 className={style["title"]}>
          <Link to={{ name: "run", id: interaction.run_id, tab: "conversation" }} className={style["link"]} data-row={keyOf(interaction)}>
            {title}
          </Link>
        </h2>
        <Badge tone={isOpen ? "warn" : "quiet"}>{t.inbox[kind]}</Badge>
      </header>
      <p className={style["metadata"]}>
        {interaction.agent !== null && <Link to={{ name: "agent", id: interaction.agent }}>{interaction.agent}</Link>}
        <Time at={interaction.asked_at} />
        {isOpen && !isExpanded && interaction.expires_at !== null && (
          <span>{t.inbox.expires(format.ago(new Date(interaction.expires_at), new Date()))}</span>
        )}
      </p>
      {!isExpanded && interaction.description !== undefined && <p className={style["description"]}>{interaction.description}</p>}
      {isExpanded && (
        <div id={formId} className={style["form"]}>
          <Suspense fallback={<Loading lines={3} />}>
            <InteractionForm interaction={interaction} onAnswered={onAnswered} untitled />
          </Suspense>
        </div>
      )}
      <footer className={style["foot"]}>
        {isOpen && !isExpanded && (
          <Button size="small" aria-controls={formId} aria-expanded={false} onClick={() => setToggled(true)}>
            {t.inbox.answer}
          </Button>
        )}
        <Link to={{ name: "run", id: interaction.run_id, tab: "conversation" }} className={style["open"]}>
          {t.inbox.openRun}
          <Icon name="arrowRight" size={14} />
        </Link>
      </footer>
    </li>
  );
}
