import { createContext, use, type ReactNode } from "react";
import { useInteractions, type UseInteractionsResult } from "@runwire/client/react";

const InboxContext = createContext<UseInteractionsResult | null>(null);
const filter = { status: "open", limit: 100 } as const;

/** Watches once, for the navigation, the title and the inbox, what waits for a person. */
export function InboxProvider({ children }: { children: ReactNode }) {
  return <InboxContext value={useInteractions(filter)}>{children}</InboxContext>;
}

/** Gives what waits for a person. */
export function useWaiting(): UseInteractionsResult {
  const inbox = use(InboxContext);
  if (inbox === null) throw new Error("useWaiting outside of InboxProvider");
  return inbox;
}
