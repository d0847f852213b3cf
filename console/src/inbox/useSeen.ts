import { useEffect, useRef, useState } from "react";
import type { Interaction } from "@runwire/client";
import { client } from "../client";

/** Names a question: its own id is unique only within its run. */
export function keyOf(interaction: Pick<Interaction, "run_id" | "interaction_id">): string {
  return `${interaction.run_id} ${interaction.interaction_id}`;
}

/**
 * Gives the open questions, and those that were open since the page was opened, with what became of them: a form
 * does not vanish under the hands of whoever fills it in because somebody else was faster.
 */
export function useSeen(open: readonly Interaction[]): readonly Interaction[] {
  const [settled, setSettled] = useState<ReadonlyMap<string, Interaction>>(new Map());
  const before = useRef<ReadonlyMap<string, Interaction>>(new Map());
  useEffect(() => {
    const now = new Map(open.map((interaction) => [keyOf(interaction), interaction]));
    const gone = [...before.current.values()].filter((interaction) => !now.has(keyOf(interaction)));
    before.current = now;
    for (const interaction of gone) {
      client.interactions.get(interaction.run_id, interaction.interaction_id).then(
        (answered) => setSettled((known) => new Map(known).set(keyOf(interaction), answered)),
        // Deleted with its thread, or out of reach: then it is only gone.
        () => {},
      );
    }
  }, [open]);
  const still = [...settled].filter(([key]) => !open.some((interaction) => keyOf(interaction) === key)).map(([, interaction]) => interaction);
  return [...open, ...still].sort((left, right) => (left.asked_at < right.asked_at ? 1 : left.asked_at > right.asked_at ? -1 : 0));
}
