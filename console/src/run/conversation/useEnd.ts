import { useCallback, useEffect, useLayoutEffect, useRef, useState, type RefObject } from "react";

/** Nearer to the end than this is at the end. */
const close = 48;
/** What is drawn later than this after arriving moves nobody back. */
const settling = 3000;
/** What a person does to move. */
const acts = ["wheel", "touchmove", "pointerdown", "keydown"] as const;

/** Where a person was in a conversation: at its end, or at a part. */
export type Place = { end: true } | { end: false; part: string; offset: number };

interface End {
  /** Whether what is new is seen as it comes. */
  isAtEnd: boolean;
  /** Goes to the end, and stays there. */
  toEnd(): void;
}

/** Keeps a conversation at its end while a person is there, and lets it be while they read elsewhere. */
export function useEnd(content: RefObject<HTMLElement | null>, isReady: boolean, first: Place | undefined, key: string): End {
  const stuck = useRef(first === undefined || first.end);
  const [isAtEnd, setAtEnd] = useState(stuck.current);
  const hasArrived = useRef(false);
  const last = useRef(0);
  // The place to come back to, while what is above it is still being drawn and nobody has moved.
  const anchor = useRef(first?.end === false ? first : undefined);

  const toEnd = useCallback(() => {
    const element = content.current;
    const scroller = scrollerOf(element);
    stuck.current = true;
    setAtEnd(true);
    if (!element || !scroller) return;
    scroller.scrollTop = endOf(element, scroller);
    last.current = scroller.scrollTop;
  }, [content]);

  // Before the first frame with content is seen, so that nothing jumps.
  useLayoutEffect(() => {
    if (!isReady || hasArrived.current) return;
    hasArrived.current = true;
    if (first?.end === false) goTo(content.current, first.part, first.offset);
    else if (first !== undefined) toEnd();
    else stuck.current = false;
  }, [isReady, first, content, toEnd]);

  useEffect(() => {
    const element = content.current;
    const scroller = scrollerOf(element);
    if (!isReady || !element || !scroller) return;
    last.current = scroller.scrollTop;
    const tell = () => {
      last.current = scroller.scrollTop;
      setAtEnd(stuck.current || distance(scroller) < close);
    };
    const move = () => {
      if (distance(scroller) < close) stuck.current = true;
      else if (scroller.scrollTop < last.current - 1) stuck.current = false;
      tell();
    };
    const letGo = () => (anchor.current = undefined);
    const settled = setTimeout(letGo, settling);
    for (const act of acts) window.addEventListener(act, letGo, { passive: true });
    const resize = new ResizeObserver(() => {
      if (anchor.current) goTo(element, anchor.current.part, anchor.current.offset);
      // What grows may push on, never back: a person may be at work further down in a long form. And what folds
      // above moves the page up without anybody having moved.
      if (stuck.current && endOf(element, scroller) > scroller.scrollTop) toEnd();
      tell();
    });
    const leave = () => keepPlace(key, stuck.current ? { end: true } : placeOf(element, scroller));
    resize.observe(element);
    scroller.addEventListener("scroll", move, { passive: true });
    window.addEventListener("pagehide", leave);
    return () => {
      clearTimeout(settled);
      for (const act of acts) window.removeEventListener(act, letGo);
      resize.disconnect();
      scroller.removeEventListener("scroll", move);
      window.removeEventListener("pagehide", leave);
    };
  }, [isReady, content, key, toEnd]);

  return { isAtEnd, toEnd };
}

function scrollerOf(element: HTMLElement | null): HTMLElement | null {
  return element?.closest<HTMLElement>("[data-scroller]") ?? null;
}

/** How far the end is below what is seen. */
function distance(scroller: HTMLElement): number {
  return scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight;
}

/** What stays at the top of the page hides what is under it. */
function topOf(scroller: HTMLElement): number {
  const bar = scroller.querySelector("[data-run-bar]");
  return scroller.getBoundingClientRect().top + (bar?.getBoundingClientRect().height ?? 0);
}

/** The end, but never past the beginning of a question that waits: it is to be read before it is answered. */
function endOf(content: HTMLElement, scroller: HTMLElement): number {
  const end = scroller.scrollHeight - scroller.clientHeight;
  const question = content.querySelector("form");
  if (question === null) return end;
  const top = question.getBoundingClientRect().top - topOf(scroller) + scroller.scrollTop;
  return Math.min(end, top - 2 * close);
}

function placeOf(content: HTMLElement, scroller: HTMLElement): Place | undefined {
  if (scroller.scrollTop < close) return undefined;
  const top = topOf(scroller);
  for (const element of content.querySelectorAll<HTMLElement>("[data-part]")) {
    const box = element.getBoundingClientRect();
    if (box.bottom > top) return { end: false, part: element.dataset["part"] ?? "", offset: Math.round(box.top - top) };
  }
  return undefined;
}

function goTo(content: HTMLElement | null, part: string, offset: number): void {
  const scroller = scrollerOf(content);
  const element = content?.querySelector<HTMLElement>(`[data-part="${CSS.escape(part)}"]`);
  if (!scroller || !element) return;
  scroller.scrollTop += element.getBoundingClientRect().top - topOf(scroller) - offset;
}

/** Gives where a person was before a reload. */
export function keptPlace(key: string): Place | undefined {
  try {
    const text = sessionStorage.getItem(key);
    return text === null ? undefined : (JSON.parse(text) as Place);
  } catch {
    return undefined;
  }
}

function keepPlace(key: string, place: Place | undefined): void {
  try {
    if (place === undefined) sessionStorage.removeItem(key);
    else sessionStorage.setItem(key, JSON.stringify(place));
  } catch {
    // A browser that forbids storage begins at the usual place, nothing else.
  }
}
