import { useSyncExternalStore } from "react";

/** How the server can be reached: as always, not at all, or again just now. */
export type Connection = "fine" | "lost" | "back";

const backFor = 3000;

let state: Connection = "fine";
let timer: ReturnType<typeof setTimeout> | undefined;
const listeners = new Set<() => void>();

function become(next: Connection) {
  if (state === next) return;
  state = next;
  clearTimeout(timer);
  if (next === "back") timer = setTimeout(() => become("fine"), backFor);
  for (const listener of listeners) listener();
}

/** Notes that the server did not answer, or that a stream broke off. */
export function connectionLost(): void {
  become("lost");
}

/** Notes that the server answered. */
export function connectionWorks(): void {
  if (state === "lost") become("back");
}

/** Gives the state of the connection. */
export function useConnection(): Connection {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => state,
  );
}

/** Fetches as the browser does, and notes whether the server could be reached. */
export const watchedFetch: typeof fetch = async (input, init) => {
  try {
    const response = await fetch(input, init);
    // A proxy in front answers these while the server behind it is away.
    if (response.status === 502 || response.status === 504) connectionLost();
    else connectionWorks();
    return response;
  } catch (error) {
    const aborted = init?.signal?.aborted === true || (error instanceof DOMException && error.name === "AbortError");
    if (!aborted) connectionLost();
    throw error;
  }
};
