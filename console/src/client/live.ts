import { ProblemError } from "@runwire/client";
import { useCallback, useEffect, useRef, useState } from "react";

/** What is known of something on the server that is asked for again and again. */
export interface Live<T> {
  /** The newest that is known; kept while a later request fails. */
  data: T | undefined;
  /** Why the last request failed. */
  error: unknown;
  /** Asks again at once. */
  refresh(): void;
}

interface Options {
  /** Milliseconds between two requests; 0 asks once. */
  every: number;
}

/**
 * Asks for something now and then while the page can be seen, and at once when it can be seen again.
 * Another `key` forgets what was known.
 */
export function useLive<T>(key: string, ask: (signal: AbortSignal) => Promise<T>, { every }: Options): Live<T> {
  const [known, setKnown] = useState<{ key: string; data: T | undefined; error: unknown }>({
    key,
    data: undefined,
    error: undefined,
  });
  const asking = useRef(ask);
  asking.current = ask;
  const again = useRef<() => void>(() => {});

  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let abort: AbortController | undefined;
    let failures = 0;
    let refused = false;
    const request = async () => {
      clearTimeout(timer);
      abort?.abort();
      const mine = (abort = new AbortController());
      try {
        const data = await asking.current(mine.signal);
        if (mine.signal.aborted) return;
        failures = 0;
        setKnown({ key, data, error: undefined });
      } catch (error) {
        if (mine.signal.aborted) return;
        failures += 1;
        // The same request will be refused again, unless something changes on the server.
        refused = error instanceof ProblemError && error.status < 500;
        setKnown((before) => ({ key, data: before.key === key ? before.data : undefined, error }));
      }
      // What failed is asked for again even where once would have been enough, ever more slowly.
      const wait = failures === 0 ? every : refused ? every && 15_000 : Math.min(1000 * 2 ** (failures - 1), 8000);
      if (wait > 0 && document.visibilityState === "visible") timer = setTimeout(request, wait);
    };
    const seen = () => {
      if (document.visibilityState === "visible") void request();
      else clearTimeout(timer);
    };
    again.current = () => void request();
    void request();
    document.addEventListener("visibilitychange", seen);
    window.addEventListener("online", seen);
    return () => {
      clearTimeout(timer);
      abort?.abort();
      document.removeEventListener("visibilitychange", seen);
      window.removeEventListener("online", seen);
    };
  }, [key, every]);

  const refresh = useCallback(() => again.current(), []);
  return known.key === key
    ? { data: known.data, error: known.error, refresh }
    : { data: undefined, error: undefined, refresh };
}
