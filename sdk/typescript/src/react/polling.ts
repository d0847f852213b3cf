import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { isTemporary } from "../errors.js";

/** Something that is asked for again and again. */
export interface Polled<T> {
  /** The newest answer; the same object until it says something else. */
  data: T | undefined;
  /** Why the last attempt failed; nothing once one succeeds. */
  error: Error | undefined;
  /** Whether nothing has come yet. */
  isLoading: boolean;
  /** Asks at once. */
  refresh(): Promise<void>;
}

/** Asks again and again, one question at a time, and not while nobody sees the page. */
export function usePolling<T>(key: string, load: (signal: AbortSignal) => Promise<T>, every: number | undefined): Polled<T> {
  const loading = useRef(load);
  loading.current = load;
  const [state, setState] = useState<{ key: string; text: string | undefined; data: T | undefined; error: Error | undefined }>({ key, text: undefined, data: undefined, error: undefined });
  /** Asks once, and tells how many times the usual wait should follow. */
  const ask = useCallback(
    async (signal: AbortSignal): Promise<number> => {
      try {
        const data = await loading.current(signal);
        if (signal.aborted) return 0;
        const text = JSON.stringify(data);
        setState((before) => (before.key === key && before.text === text && before.error === undefined ? before : { key, text, data, error: undefined }));
        return 1;
      } catch (error) {
        if (signal.aborted) return 0;
        const caught = error instanceof Error ? error : new Error(String(error));
        setState((before) => ({ ...(before.key === key ? before : { key, text: undefined, data: undefined }), error: caught }));
        // What is refused now will most likely be refused again.
        return isTemporary(error) ? 1 : 5;
      }
    },
    [key],
  );
  useEffect(() => {
    const abort = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isAsking = false;
    const next = async (): Promise<void> => {
      clearTimeout(timer);
      if (isAsking || abort.signal.aborted || document.hidden) return;
      isAsking = true;
      const waits = await ask(abort.signal);
      isAsking = false;
      if (every !== undefined && !abort.signal.aborted) timer = setTimeout(() => void next(), every * waits);
    };
    const look = (): void => void next();
    void next();
    document.addEventListener("visibilitychange", look);
    return () => {
      abort.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", look);
    };
  }, [ask, every]);
  const refresh = useCallback(async () => void (await ask(new AbortController().signal)), [ask]);
  const isCurrent = state.key === key;
  return useMemo(
    () => ({
      data: isCurrent ? state.data : undefined,
      error: isCurrent ? state.error : undefined,
      isLoading: !isCurrent || (state.data === undefined && state.error === undefined),
      refresh,
    }),
    [state, isCurrent, refresh],
  );
}
