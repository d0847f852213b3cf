import { Runwire } from "@runwire/client";
import { watchedFetch } from "./connection";

export { connectionLost, connectionWorks, useConnection, type Connection } from "./connection";
export { InboxProvider, useWaiting } from "./inbox";
export { useList, type LiveList } from "./list";
export { useLive, type Live } from "./live";

/** The console's one client: the server that served the page. */
export const client = new Runwire({ url: "", fetch: watchedFetch });
