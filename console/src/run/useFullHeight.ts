import { useLayoutEffect, useRef, type RefObject } from "react";

/** Minimum height of the pane in pixels. */
const minHeight = 340;
/** Margin below the pane in pixels. */
const bottomMargin = 20;

/** Sets the height of an element to the rest of the window, so that it scrolls by itself. */
export function useFullHeight<E extends HTMLElement>(): RefObject<E | null> {
  const element = useRef<E>(null);
  useLayoutEffect(() => {
    const scroller = element.current?.closest<HTMLElement>("[data-scroller]");
    if (!scroller) return;
    const updateHeight = () => {
      const pane = element.current;
      if (!pane) return;
      const top = pane.getBoundingClientRect().top - scroller.getBoundingClientRect().top + scroller.scrollTop;
      const height = Math.max(minHeight, Math.floor(scroller.clientHeight - top - bottomMargin));
      pane.style.height = `${height}px`;
      // The page's bottom padding would cause a second scrollbar.
      const padding = Number.parseFloat(getComputedStyle(scroller.firstElementChild ?? pane).paddingBottom) || 0;
      pane.style.marginBottom = `${bottomMargin - Math.max(bottomMargin, padding)}px`;
    };
    updateHeight();
    const observer = new ResizeObserver(updateHeight);
    observer.observe(scroller);
    // The header above changes its height too.
    if (scroller.firstElementChild) observer.observe(scroller.firstElementChild);
    return () => observer.disconnect();
  }, []);
  return element;
}
