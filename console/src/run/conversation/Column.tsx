import { useLayoutEffect, useRef, type ReactNode } from "react";
import style from "./Conversation.module.css";

/** Column of a conversation, at least as high as the page, so that the composer is at the bottom. */
export function Column({ children }: { children: ReactNode }) {
  const column = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const element = column.current;
    const scroller = element?.closest<HTMLElement>("[data-scroller]");
    const page = element?.parentElement;
    if (!element || !scroller || !page) return;
    const updateHeight = () => {
      const above = element.getBoundingClientRect().top - scroller.getBoundingClientRect().top + scroller.scrollTop;
      const below = Number.parseFloat(getComputedStyle(page).paddingBottom) || 0;
      element.style.minHeight = `${Math.max(0, scroller.clientHeight - above - below)}px`;
    };
    updateHeight();
    const observer = new ResizeObserver(updateHeight);
    observer.observe(scroller);
    // Elements above may appear later, or wrap.
    for (const other of page.children) if (other !== element) observer.observe(other);
    return () => observer.disconnect();
  }, []);
  return (
    <div ref={column} className={style["column"]}>
      {children}
    </div>
  );
}
