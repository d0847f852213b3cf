import { useSyncExternalStore } from "react";

/** State of the connection to the server; `back` is shown for a moment after a reconnect. */
export type ConnectionState = "fine" | "lost" | "back";

const backDuration = 3000;

let current: ConnectionState = "fine";
let timer: ReturnType<typeof setTimeout> | undefined;
const listeners = new Set<() => void>();

function setState(next: ConnectionState) {
  if (current === next) return;
  current = next;
  clearTimeout(timer);
  if (next === "back") timer = setTimeout(() => setState("fine"), backDuration);
  for (const listener of listeners) listener();
}

/** Reports a failed request or an interrupted stream. */
export function connectionLost(): void {
  setState("lost");
}

/** Reports a successful request. */
export function connectionRestored(): void {
  if (current === "lost") setState("back");
}

/** Returns the state of the connection. */
export function useConnection(): ConnectionState {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => current,
  );
}

/** The browser's `fetch`, which also updates the connection state. */
export const trackedFetch: typeof fetch = async (input, init) => {
  try {
    const response = await fetch(input, init);
    // A proxy sends these while the server behind it is unreachable.
    if (response.status === 502 || response.status === 504) connectionLost();
    else connectionRestored();
    return response;
  } catch (error) {
    const aborted = init?.signal?.aborted === true || (error instanceof DOMException && error.name === "AbortError");
    if (!aborted) connectionLost();
    throw error;
  }
};
