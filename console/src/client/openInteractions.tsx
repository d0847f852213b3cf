import { createContext, use, type ReactNode } from "react";
import { useInteractions, type UseInteractionsResult } from "@runwire/client/react";

const OpenInteractionsContext = createContext<UseInteractionsResult | null>(null);
const filter = { status: "open", limit: 100 } as const;

/** Polls the open interactions once for the navigation, the title and the inbox. */
export function OpenInteractionsProvider({ children }: { children: ReactNode }) {
  return <OpenInteractionsContext value={useInteractions(filter)}>{children}</OpenInteractionsContext>;
}

/** Returns the open interactions of all runs. */
export function useOpenInteractions(): UseInteractionsResult {
  const interactions = use(OpenInteractionsContext);
  if (interactions === null) throw new Error("useOpenInteractions outside of OpenInteractionsProvider");
  return interactions;
}
