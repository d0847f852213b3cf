import { useEffect, useRef, useState } from "react";

/** Number of characters that are rendered at once. */
const initialLength = 30_000;
/** Maximum number of characters added per animation frame: more would block the page. */
const lengthPerFrame = 6000;

/** Returns a prefix of a text that grows with each animation frame until it is complete. */
export function useIncrementalText(text: string): string {
  const renderedLength = useRef(initialLength - lengthPerFrame);
  const [, rerender] = useState(0);
  const length = Math.min(text.length, renderedLength.current + lengthPerFrame);
  useEffect(() => {
    renderedLength.current = Math.max(length, initialLength - lengthPerFrame);
    if (length >= text.length) return;
    const frameRequest = requestAnimationFrame(() => rerender((times) => times + 1));
    return () => cancelAnimationFrame(frameRequest);
  }, [text, length]);
  return length >= text.length ? text : text.slice(0, length);
}
