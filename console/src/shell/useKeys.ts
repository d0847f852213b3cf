import { useEffect, useRef } from "react";

/** Actions by key or key sequence. */
export type KeyActions = Readonly<Record<string, (event: KeyboardEvent) => void>>;

const sequenceTimeout = 1200;

/** Returns true if a key event belongs to the focused input or an open dialog. */
export function isTypingTarget(event: KeyboardEvent): boolean {
  const target = event.target;
  if (!(target instanceof HTMLElement)) return false;
  if (target.isContentEditable || document.querySelector("dialog[open]") !== null) return true;
  return target.matches("input:not([type=checkbox]):not([type=radio]), textarea, select");
}

/**
 * Handles single keys (`j`) and sequences (`g r`) on the page, except in inputs and while a dialog is open.
 */
export function useKeys(actions: KeyActions): void {
  const current = useRef(actions);
  current.current = actions;
  useEffect(() => {
    let first = "";
    let pressedAt = 0;
    const onKeyDown = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTypingTarget(event)) return;
      // Enter activates a focused link or button.
      if (event.key === "Enter" && event.target instanceof HTMLElement && event.target.closest("a, button, summary")) return;
      const sequence = event.timeStamp - pressedAt < sequenceTimeout && first !== "" ? `${first} ${event.key}` : "";
      const action = current.current[sequence] ?? current.current[event.key];
      first = event.key.length === 1 ? event.key : "";
      pressedAt = event.timeStamp;
      if (action === undefined) return;
      first = "";
      event.preventDefault();
      action(event);
    };
    document.addEventListener("keydown", onKeyDown);
    return () => document.removeEventListener("keydown", onKeyDown);
  }, []);
}
