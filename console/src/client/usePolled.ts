import { ProblemError } from "@runwire/client";
import { useCallback, useEffect, useRef, useState } from "react";

/** Result of a polled request. */
export interface Polled<T> {
  /** The latest response; kept while later requests fail. */
  data: T | undefined;
  /** The error of the last request. */
  error: unknown;
  /** Sends a request at once. */
  refresh(): void;
}

interface Options {
  /** Milliseconds between two requests; 0 sends one request. */
  interval: number;
}

/**
 * Polls while the page is visible, and at once when it becomes visible again. A new `key` discards the data.
 */
export function usePolled<T>(key: string, load: (signal: AbortSignal) => Promise<T>, { interval }: Options): Polled<T> {
  const [state, setState] = useState<{ key: string; data: T | undefined; error: unknown }>({
    key,
    data: undefined,
    error: undefined,
  });
  const latestLoad = useRef(load);
  latestLoad.current = load;
  const poll = useRef<() => void>(() => {});

  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let abort: AbortController | undefined;
    let failures = 0;
    let isRefused = false;
    const pollOnce = async () => {
      clearTimeout(timer);
      abort?.abort();
      const current = (abort = new AbortController());
      try {
        const data = await latestLoad.current(current.signal);
        if (current.signal.aborted) return;
        failures = 0;
        setState({ key, data, error: undefined });
      } catch (error) {
        if (current.signal.aborted) return;
        failures += 1;
        // The same request will be refused again, unless something changes on the server.
        isRefused = error instanceof ProblemError && error.status < 500;
        setState((before) => ({ key, data: before.key === key ? before.data : undefined, error }));
      }
      // A failed request is retried with exponential backoff, even if the interval is 0.
      const delay = failures === 0 ? interval : isRefused ? interval && 15_000 : Math.min(1000 * 2 ** (failures - 1), 8000);
      if (delay > 0 && document.visibilityState === "visible") timer = setTimeout(pollOnce, delay);
    };
    const onVisibilityChange = () => {
      if (document.visibilityState === "visible") void pollOnce();
      else clearTimeout(timer);
    };
    poll.current = () => void pollOnce();
    void pollOnce();
    document.addEventListener("visibilitychange", onVisibilityChange);
    window.addEventListener("online", onVisibilityChange);
    return () => {
      clearTimeout(timer);
      abort?.abort();
      document.removeEventListener("visibilitychange", onVisibilityChange);
      window.removeEventListener("online", onVisibilityChange);
    };
  }, [key, interval]);

  const refresh = useCallback(() => poll.current(), []);
  return state.key === key
    ? { data: state.data, error: state.error, refresh }
    : { data: undefined, error: undefined, refresh };
}
