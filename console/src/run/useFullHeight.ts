import { useLayoutEffect, useRef, type RefObject } from "react";

/** However small the window is, a pane of this height is left, in pixels. */
const least = 340;
/** What is left free below it. */
const below = 20;

/** Makes an element as high as what the window has left below its top, so that it can scroll by itself. */
export function useFullHeight<E extends HTMLElement>(): RefObject<E | null> {
  const element = useRef<E>(null);
  useLayoutEffect(() => {
    const scroller = element.current?.closest<HTMLElement>("[data-scroller]");
    if (!scroller) return;
    const fit = () => {
      const pane = element.current;
      if (!pane) return;
      const top = pane.getBoundingClientRect().top - scroller.getBoundingClientRect().top + scroller.scrollTop;
      const height = Math.max(least, Math.floor(scroller.clientHeight - top - below));
      pane.style.height = `${height}px`;
      // The page's own space below would make a second thing that scrolls.
      const space = Number.parseFloat(getComputedStyle(scroller.firstElementChild ?? pane).paddingBottom) || 0;
      pane.style.marginBottom = `${below - Math.max(below, space)}px`;
    };
    fit();
    const watch = new ResizeObserver(fit);
    watch.observe(scroller);
    // The run's heading above grows and shrinks as well.
    if (scroller.firstElementChild) watch.observe(scroller.firstElementChild);
    return () => watch.disconnect();
  }, []);
  return element;
}
