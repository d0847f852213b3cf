import { useLayoutEffect, useRef, type RefObject } from "react";
import { useRouter } from "../router";

/** How long a page may take to grow back to where it was. */
const patience = 2000;

/** Brings a page back to where it was scrolled when a person returns to it, and a new one to its top. */
export function useScrollMemory(main: RefObject<HTMLElement | null>, path: string): void {
  const places = useRef(new Map<string, number>());
  const { isHistoryNavigation } = useRouter();
  // Before the next frame: by then the page that left has shrunk, and would be remembered at its top.
  useLayoutEffect(() => {
    const scroller = main.current;
    if (scroller === null) return;
    const known = places.current;
    const stop = restore(scroller, isHistoryNavigation ? (known.get(path) ?? 0) : 0);
    const note = () => known.set(path, scroller.scrollTop);
    scroller.addEventListener("scroll", note, { passive: true });
    return () => {
      stop();
      scroller.removeEventListener("scroll", note);
    };
    // Only another page is an arrival.
  }, [main, path]);
}

/** Scrolls to a place as soon as the content reaches it, unless the person scrolls first. */
function restore(scroller: HTMLElement, top: number): () => void {
  scroller.scrollTop = top;
  if (scroller.scrollTop >= top - 1) return () => {};
  const given = new AbortController();
  const stop = () => given.abort();
  const until = performance.now() + patience;
  const again = () => {
    if (given.signal.aborted || performance.now() > until) return;
    scroller.scrollTop = top;
    if (scroller.scrollTop < top - 1) requestAnimationFrame(again);
  };
  requestAnimationFrame(again);
  for (const act of ["wheel", "touchstart", "keydown", "pointerdown"]) {
    scroller.ownerDocument.addEventListener(act, stop, { signal: given.signal, passive: true });
  }
  return stop;
}
