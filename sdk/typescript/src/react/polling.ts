import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { isRetryable } from "../errors.js";

/** Result of a polled request. */
export interface PollResult<T> {
  /** The latest response; the same object until its content changes. */
  data: T | undefined;
  /** The error of the last request; undefined after a success. */
  error: Error | undefined;
  /** Whether no request has finished yet. */
  isLoading: boolean;
  /** Polls at once. */
  refresh(): Promise<void>;
}

/** Polls with one request at a time; pauses while the page is hidden. */
export function usePolling<T>(key: string, load: (signal: AbortSignal) => Promise<T>, interval: number | undefined): PollResult<T> {
  const latestLoad = useRef(load);
  latestLoad.current = load;
  const [state, setState] = useState<{ key: string; text: string | undefined; data: T | undefined; error: Error | undefined }>({ key, text: undefined, data: undefined, error: undefined });
  /** Sends one request; returns the factor by which the interval is multiplied. */
  const poll = useCallback(
    async (signal: AbortSignal): Promise<number> => {
      try {
        const data = await latestLoad.current(signal);
        if (signal.aborted) return 0;
        const text = JSON.stringify(data);
        setState((before) => (before.key === key && before.text === text && before.error === undefined ? before : { key, text, data, error: undefined }));
        return 1;
      } catch (error) {
        if (signal.aborted) return 0;
        const failure = error instanceof Error ? error : new Error(String(error));
        setState((before) => ({ ...(before.key === key ? before : { key, text: undefined, data: undefined }), error: failure }));
        // A refused request will most likely be refused again.
        return isRetryable(error) ? 1 : 5;
      }
    },
    [key],
  );
  useEffect(() => {
    const abort = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isPolling = false;
    const next = async (): Promise<void> => {
      clearTimeout(timer);
      if (isPolling || abort.signal.aborted || document.hidden) return;
      isPolling = true;
      const factor = await poll(abort.signal);
      isPolling = false;
      if (interval !== undefined && !abort.signal.aborted) timer = setTimeout(() => void next(), interval * factor);
    };
    const onVisibilityChange = (): void => void next();
    void next();
    document.addEventListener("visibilitychange", onVisibilityChange);
    return () => {
      abort.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", onVisibilityChange);
    };
  }, [poll, interval]);
  const refresh = useCallback(async () => void (await poll(new AbortController().signal)), [poll]);
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
