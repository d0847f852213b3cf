import type { Interaction, InteractionPart } from "@runwire/client";
import { useMemo } from "react";
import { client, useLive } from "../../client";
import { InteractionForm } from "../forms";
import { useReading } from "./context";

/** A question of the run, where it was asked. */
export function Question({ part }: { part: InteractionPart }) {
  const { runId, threadId, agent } = useReading();
  // An agent that sets no time leaves it to the server, which knows it.
  const isAsked = part.status === "open" && part.expiresAt === undefined;
  const ask = () => (isAsked ? client.interactions.get(runId, part.interactionId) : Promise.resolve(undefined));
  const { data } = useLive(`question ${runId} ${part.interactionId} ${isAsked}`, ask, { every: 0 });
  const expires = part.expiresAt ?? data?.expires_at ?? null;
  const interaction = useMemo(() => interactionOf(part, expires, runId, threadId, agent), [part, expires, runId, threadId, agent]);
  return <InteractionForm interaction={interaction} />;
}

/** Writes a part of the conversation as the server's list of questions would. */
function interactionOf(part: InteractionPart, expires_at: string | null, run_id: string, thread_id: string, agent: string | null): Interaction {
  const { title, description, schema, ui, callId, name, reason, answer } = part;
  return {
    interaction_id: part.interactionId,
    run_id,
    thread_id,
    agent,
    kind: part.interactionKind,
    status: part.status,
    asked_at: new Date(part.startedAt).toISOString(),
    expires_at,
    answer: answer === undefined ? null : { ...answer, at: new Date(part.endedAt ?? part.startedAt).toISOString() },
    ...(title !== undefined && { title }),
    ...(description !== undefined && { description }),
    ...(schema !== undefined && { schema }),
    ...(ui !== undefined && { ui }),
    ...(callId !== undefined && { call_id: callId }),
    ...(name !== undefined && { name }),
    ...(part.arguments !== undefined && { arguments: part.arguments }),
    ...(reason !== undefined && { reason }),
  };
}
