import { useEffect, useRef, useState } from "react";

/** A text as long as this is drawn at once. */
const atOnce = 30_000;
/** More than this is not added in one frame: much at once would hold up the page. */
const perFrame = 6000;

/** Gives a text that grows by no more than a page can draw in a frame, until it has caught up. */
export function useGrowing(text: string): string {
  const shown = useRef(atOnce - perFrame);
  const [, redraw] = useState(0);
  const length = Math.min(text.length, shown.current + perFrame);
  useEffect(() => {
    shown.current = Math.max(length, atOnce - perFrame);
    if (length >= text.length) return;
    const frame = requestAnimationFrame(() => redraw((times) => times + 1));
    return () => cancelAnimationFrame(frame);
  }, [text, length]);
  return length >= text.length ? text : text.slice(0, length);
}
