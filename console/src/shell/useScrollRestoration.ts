import { useLayoutEffect, useRef, type RefObject } from "react";
import { useRouter } from "../router";

/** How long restoring waits for the content to load, in milliseconds. */
const restoreTimeout = 2000;

/** Restores the scroll position on back and forward; other navigations start at the top. */
export function useScrollRestoration(main: RefObject<HTMLElement | null>, path: string): void {
  const positions = useRef(new Map<string, number>());
  const { isHistoryNavigation } = useRouter();
  // In a layout effect: later, the shrunken old page would be stored with a scroll position of 0.
  useLayoutEffect(() => {
    const scroller = main.current;
    if (scroller === null) return;
    const stored = positions.current;
    const stop = restore(scroller, isHistoryNavigation ? (stored.get(path) ?? 0) : 0);
    const onScroll = () => stored.set(path, scroller.scrollTop);
    scroller.addEventListener("scroll", onScroll, { passive: true });
    return () => {
      stop();
      scroller.removeEventListener("scroll", onScroll);
    };
    // Runs only when the page changes.
  }, [main, path]);
}

/** Scrolls to a position as soon as the content is long enough, unless the person scrolls first. */
function restore(scroller: HTMLElement, top: number): () => void {
  scroller.scrollTop = top;
  if (scroller.scrollTop >= top - 1) return () => {};
  const abort = new AbortController();
  const stop = () => abort.abort();
  const deadline = performance.now() + restoreTimeout;
  const tryRestore = () => {
    if (abort.signal.aborted || performance.now() > deadline) return;
    scroller.scrollTop = top;
    if (scroller.scrollTop < top - 1) requestAnimationFrame(tryRestore);
  };
  requestAnimationFrame(tryRestore);
  for (const event of ["wheel", "touchstart", "keydown", "pointerdown"]) {
    scroller.ownerDocument.addEventListener(event, stop, { signal: abort.signal, passive: true });
  }
  return stop;
}
