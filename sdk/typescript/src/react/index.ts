export { RunwireProvider, useRunwire } from "./context.js";
export type { Connection } from "./reading.js";
export { type Inbox, useInbox, useInteraction, type WatchedInteraction } from "./use-inbox.js";
export { useRun, type WatchedRun } from "./use-run.js";
export { type RunListing, useRuns } from "./use-runs.js";
export { useThread, type WatchedThread } from "./use-thread.js";
