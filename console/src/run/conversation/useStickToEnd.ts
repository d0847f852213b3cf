import { useCallback, useEffect, useLayoutEffect, useRef, useState, type RefObject } from "react";

/** Distance to the end in pixels that counts as being at the end. */
const endTolerance = 48;
/** How long the scroll position is restored while content above is rendered, in milliseconds. */
const restoreDuration = 3000;
/** Events of a person that stop the restoring. */
const userActions = ["wheel", "touchmove", "pointerdown", "keydown"] as const;

/** Scroll position in a conversation: at its end, or at a part. */
export type ScrollPosition = { end: true } | { end: false; part: string; offset: number };

interface StickToEnd {
  /** Whether the end is visible. */
  isAtEnd: boolean;
  /** Scrolls to the end and sticks to it. */
  scrollToEnd(): void;
}

/** Keeps a conversation scrolled to its end, unless a person has scrolled up. */
export function useStickToEnd(content: RefObject<HTMLElement | null>, isReady: boolean, initial: ScrollPosition | undefined, key: string): StickToEnd {
  const isSticky = useRef(initial === undefined || initial.end);
  const [isAtEnd, setAtEnd] = useState(isSticky.current);
  const isInitialized = useRef(false);
  const lastScrollTop = useRef(0);
  // The position to restore, while content above it is rendered and nobody has scrolled.
  const restoring = useRef(initial?.end === false ? initial : undefined);

  const scrollToEnd = useCallback(() => {
    const element = content.current;
    const scroller = scrollerOf(element);
    isSticky.current = true;
    setAtEnd(true);
    if (!element || !scroller) return;
    scroller.scrollTop = endOf(element, scroller);
    lastScrollTop.current = scroller.scrollTop;
  }, [content]);

  // Before the first paint with content, so that nothing jumps.
  useLayoutEffect(() => {
    if (!isReady || isInitialized.current) return;
    isInitialized.current = true;
    if (initial?.end === false) scrollToPart(content.current, initial.part, initial.offset);
    else if (initial !== undefined) scrollToEnd();
    else isSticky.current = false;
  }, [isReady, initial, content, scrollToEnd]);

  useEffect(() => {
    const element = content.current;
    const scroller = scrollerOf(element);
    if (!isReady || !element || !scroller) return;
    lastScrollTop.current = scroller.scrollTop;
    const update = () => {
      lastScrollTop.current = scroller.scrollTop;
      setAtEnd(isSticky.current || distanceToEnd(scroller) < endTolerance);
    };
    const onScroll = () => {
      if (distanceToEnd(scroller) < endTolerance) isSticky.current = true;
      else if (scroller.scrollTop < lastScrollTop.current - 1) isSticky.current = false;
      update();
    };
    const stopRestoring = () => (restoring.current = undefined);
    const restoreTimer = setTimeout(stopRestoring, restoreDuration);
    for (const action of userActions) window.addEventListener(action, stopRestoring, { passive: true });
    const observer = new ResizeObserver(() => {
      if (restoring.current) scrollToPart(element, restoring.current.part, restoring.current.offset);
      // Growing content scrolls down, never up: a person may fill in a long form further down. Collapsing content
      // above scrolls up without an action of a person.
      if (isSticky.current && endOf(element, scroller) > scroller.scrollTop) scrollToEnd();
      update();
    });
    const store = () => storeScrollPosition(key, isSticky.current ? { end: true } : positionOf(element, scroller));
    observer.observe(element);
    scroller.addEventListener("scroll", onScroll, { passive: true });
    window.addEventListener("pagehide", store);
    return () => {
      clearTimeout(restoreTimer);
      for (const action of userActions) window.removeEventListener(action, stopRestoring);
      observer.disconnect();
      scroller.removeEventListener("scroll", onScroll);
      window.removeEventListener("pagehide", store);
    };
  }, [isReady, content, key, scrollToEnd]);

  return { isAtEnd, scrollToEnd };
}

function scrollerOf(element: HTMLElement | null): HTMLElement | null {
  return element?.closest<HTMLElement>("[data-scroller]") ?? null;
}

/** Returns the distance of the viewport to the end. */
function distanceToEnd(scroller: HTMLElement): number {
  return scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight;
}

/** Returns the top of the visible area below the sticky bar. */
function visibleTop(scroller: HTMLElement): number {
  const bar = scroller.querySelector("[data-run-bar]");
  return scroller.getBoundingClientRect().top + (bar?.getBoundingClientRect().height ?? 0);
}

/** Returns the scroll position of the end, but not past the start of an open form, which has to be read first. */
function endOf(content: HTMLElement, scroller: HTMLElement): number {
  const end = scroller.scrollHeight - scroller.clientHeight;
  const form = content.querySelector("form");
  if (form === null) return end;
  const top = form.getBoundingClientRect().top - visibleTop(scroller) + scroller.scrollTop;
  return Math.min(end, top - 2 * endTolerance);
}

function positionOf(content: HTMLElement, scroller: HTMLElement): ScrollPosition | undefined {
  if (scroller.scrollTop < endTolerance) return undefined;
  const top = visibleTop(scroller);
  for (const element of content.querySelectorAll<HTMLElement>("[data-part]")) {
    const box = element.getBoundingClientRect();
    if (box.bottom > top) return { end: false, part: element.dataset["part"] ?? "", offset: Math.round(box.top - top) };
  }
  return undefined;
}

function scrollToPart(content: HTMLElement | null, part: string, offset: number): void {
  const scroller = scrollerOf(content);
  const element = content?.querySelector<HTMLElement>(`[data-part="${CSS.escape(part)}"]`);
  if (!scroller || !element) return;
  scroller.scrollTop += element.getBoundingClientRect().top - visibleTop(scroller) - offset;
}

/** Returns the scroll position before a reload. */
export function loadScrollPosition(key: string): ScrollPosition | undefined {
  try {
    const text = sessionStorage.getItem(key);
    return text === null ? undefined : (JSON.parse(text) as ScrollPosition);
  } catch {
    return undefined;
  }
}

function storeScrollPosition(key: string, position: ScrollPosition | undefined): void {
  try {
    if (position === undefined) sessionStorage.removeItem(key);
    else sessionStorage.setItem(key, JSON.stringify(position));
  } catch {
    // Without session storage, the position is lost on reload.
  }
}
