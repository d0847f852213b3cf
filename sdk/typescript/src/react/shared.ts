import type { Runwire } from "../client.js";

/** How many things that nobody looks at any more are remembered: whoever comes back to one sees it at once. */
const REMEMBERED = 3;

/** Keeps one thing per client and name, so that two components that look at one run share a connection. */
export class Shared<T extends { readonly isWatched: boolean }> {
  readonly #make: (client: Runwire, id: string, after: string | undefined) => T;
  readonly #clients = new WeakMap<Runwire, Map<string, T>>();

  constructor(make: (client: Runwire, id: string, after: string | undefined) => T) {
    this.#make = make;
  }

  /** Finds the thing, or makes it. */
  get(client: Runwire, id: string, after: string | undefined): T {
    let things = this.#clients.get(client);
    if (things === undefined) this.#clients.set(client, (things = new Map()));
    const name = `${after ?? ""} ${id}`;
    const thing = things.get(name) ?? this.#make(client, id, after);
    // The newest stands last, so that the oldest are forgotten first.
    things.delete(name);
    const left = [...things].filter(([, each]) => !each.isWatched);
    for (const [oldest] of left.slice(0, Math.max(0, left.length - REMEMBERED))) things.delete(oldest);
    things.set(name, thing);
    return thing;
  }
}
