export { RunwireProvider, useRunwire } from "./context.js";
export type { SubscriptionState } from "./subscription.js";
export { type UseInteractionsResult, useInteractions, useInteraction, type UseInteractionResult } from "./use-interactions.js";
export { useRun, type UseRunResult } from "./use-run.js";
export { type UseRunsResult, useRuns } from "./use-runs.js";
export { useThread, type UseThreadResult } from "./use-thread.js";
