import type { Interaction, InteractionPart } from "@runwire/client";
import { useMemo } from "react";
import { client, usePolled } from "../../client";
import { InteractionForm } from "../forms";
import { useConversation } from "./conversationContext";

/** An interaction at its position in the conversation. */
export function InteractionView({ part }: { part: InteractionPart }) {
  const { runId, threadId, agent } = useConversation();
  // Without an expiry time in the event, the server has the default one.
  const needsExpiry = part.status === "open" && part.expiresAt === undefined;
  const load = () => (needsExpiry ? client.interactions.get(runId, part.interactionId) : Promise.resolve(undefined));
  const { data } = usePolled(`interaction ${runId} ${part.interactionId} ${needsExpiry}`, load, { interval: 0 });
  const expires = part.expiresAt ?? data?.expires_at ?? null;
  const interaction = useMemo(() => toInteraction(part, expires, runId, threadId, agent), [part, expires, runId, threadId, agent]);
  return <InteractionForm interaction={interaction} />;
}

/** Converts a part to the server's representation of an interaction. */
function toInteraction(part: InteractionPart, expires_at: string | null, run_id: string, thread_id: string, agent: string | null): Interaction {
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
