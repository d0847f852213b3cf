import { useEffect, useRef } from "react";

/** What each key does. */
export type KeyActions = Readonly<Record<string, (event: KeyboardEvent) => void>>;

const sequenceTime = 1200;

/** Tells whether a key belongs to whatever has focus, not to the page. */
export function belongsToField(event: KeyboardEvent): boolean {
  const target = event.target;
  if (!(target instanceof HTMLElement)) return false;
  if (target.isContentEditable || document.querySelector("dialog[open]") !== null) return true;
  return target.matches("input:not([type=checkbox]):not([type=radio]), textarea, select");
}

/**
 * Listens for single keys (`j`) and sequences (`g r`) anywhere on the page, except while a person types or a
 * dialog is open.
 */
export function useKeys(actions: KeyActions): void {
  const current = useRef(actions);
  current.current = actions;
  useEffect(() => {
    let first = "";
    let at = 0;
    const press = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || belongsToField(event)) return;
      // Enter on a link or a button is theirs.
      if (event.key === "Enter" && event.target instanceof HTMLElement && event.target.closest("a, button, summary")) return;
      const sequence = event.timeStamp - at < sequenceTime && first !== "" ? `${first} ${event.key}` : "";
      const action = current.current[sequence] ?? current.current[event.key];
      first = event.key.length === 1 ? event.key : "";
      at = event.timeStamp;
      if (action === undefined) return;
      first = "";
      event.preventDefault();
      action(event);
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, []);
}
