import type { Runwire } from "../client.js";

/** Subscriptions without listeners that are kept, so that a page that is revisited shows its state at once. */
const MAX_IDLE = 3;

/** Holds one subscription per client and id, so that components showing the same run share a connection. */
export class SubscriptionCache<T extends { readonly hasListeners: boolean }> {
  readonly #create: (client: Runwire, id: string, after: string | undefined) => T;
  readonly #clients = new WeakMap<Runwire, Map<string, T>>();

  constructor(create: (client: Runwire, id: string, after: string | undefined) => T) {
    this.#create = create;
  }

  /** Returns the subscription; creates it if it is missing. */
  get(client: Runwire, id: string, after: string | undefined): T {
    let subscriptions = this.#clients.get(client);
    if (subscriptions === undefined) this.#clients.set(client, (subscriptions = new Map()));
    const key = `${after ?? ""} ${id}`;
    const subscription = subscriptions.get(key) ?? this.#create(client, id, after);
    // Least recently used first: those are evicted first.
    subscriptions.delete(key);
    const idle = [...subscriptions].filter(([, each]) => !each.hasListeners);
    for (const [oldestKey] of idle.slice(0, Math.max(0, idle.length - MAX_IDLE))) subscriptions.delete(oldestKey);
    subscriptions.set(key, subscription);
    return subscription;
  }
}
