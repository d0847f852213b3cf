import { useEffect, useRef, useState } from "react";
import type { Interaction } from "@runwire/client";
import { client } from "../client";

/** Returns a unique key of an interaction: its id is unique only within its run. */
export function keyOf(interaction: Pick<Interaction, "run_id" | "interaction_id">): string {
  return `${interaction.run_id} ${interaction.interaction_id}`;
}

/**
 * Returns the open interactions and those that were resolved while the page is open: a form must not vanish while a
 * person fills it in because somebody else answered first.
 */
export function useListedInteractions(open: readonly Interaction[]): readonly Interaction[] {
  const [resolved, setResolved] = useState<ReadonlyMap<string, Interaction>>(new Map());
  const before = useRef<ReadonlyMap<string, Interaction>>(new Map());
  useEffect(() => {
    const now = new Map(open.map((interaction) => [keyOf(interaction), interaction]));
    const closed = [...before.current.values()].filter((interaction) => !now.has(keyOf(interaction)));
    before.current = now;
    for (const interaction of closed) {
      client.interactions.get(interaction.run_id, interaction.interaction_id).then(
        (answered) => setResolved((before) => new Map(before).set(keyOf(interaction), answered)),
        // Deleted with its thread, or unreachable: it is no longer listed.
        () => {},
      );
    }
  }, [open]);
  const stillListed = [...resolved].filter(([key]) => !open.some((interaction) => keyOf(interaction) === key)).map(([, interaction]) => interaction);
  return [...open, ...stillListed].sort((left, right) => (left.asked_at < right.asked_at ? 1 : left.asked_at > right.asked_at ? -1 : 0));
}
