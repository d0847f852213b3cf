import { Runwire } from "@runwire/client";
import { trackedFetch } from "./connection";

export { connectionLost, connectionRestored, useConnection, type ConnectionState } from "./connection";
export { OpenInteractionsProvider, useOpenInteractions } from "./openInteractions";
export { usePolledList, type PolledList } from "./usePolledList";
export { usePolled, type Polled } from "./usePolled";

/** The client of the server that served the page. */
export const client = new Runwire({ url: "", fetch: trackedFetch });
