import type { RunStep } from "@runwire/client";
import { createContext, use, useState } from "react";

/** State of a conversation that its parts share. */
export interface ConversationState {
  runId: string;
  threadId: string;
  agent: string | null;
  /** Parts that a person expanded or collapsed, by id; kept while a part is not rendered. */
  choices: Map<string, boolean>;
  /** Ids of parts that were shown before; they appear without a transition. */
  seen: Set<string>;
  steps: ReadonlyMap<string, RunStep>;
  isRetrying: boolean;
  /** Retries the run; undefined if it has no agent. */
  onRetry: (() => void) | undefined;
}

export const ConversationContext = createContext<ConversationState | null>(null);

/** Returns the state of the conversation. */
export function useConversation(): ConversationState {
  const conversation = use(ConversationContext);
  if (conversation === null) throw new Error("useConversation outside of a conversation");
  return conversation;
}

/** Returns whether a part is expanded: by default, until a person toggles it. */
export function useCollapsible(id: string, isOpenByDefault: boolean): { open: boolean; toggle: () => void } {
  const { choices } = useConversation();
  const [, rerender] = useState(0);
  const open = choices.get(id) ?? isOpenByDefault;
  const toggle = () => {
    choices.set(id, !open);
    rerender((times) => times + 1);
  };
  return { open, toggle };
}

/** Returns true if a part is rendered for the first time. */
export function useIsNew(id: string): boolean {
  const { seen } = useConversation();
  const [isNew] = useState(() => !seen.has(id));
  seen.add(id);
  return isNew;
}
