import { useEffect, useRef, useState, type RefObject } from "react";
import { useKeys } from "../shell/keys";
import type { VirtualListHandle } from "./VirtualList";

/**
 * Moves focus through the rows of a list with `j` and `k`. A row is focused through the element in it that has
 * the attribute `data-row` with the row's key, so that Enter is the browser's own.
 */
export function useRowKeys(keys: readonly string[], frame: RefObject<HTMLElement | null>, list?: RefObject<VirtualListHandle | null>) {
  const [wanted, setWanted] = useState<{ key: string } | null>(null);
  const current = useRef<string | null>(null);

  const move = (by: number) => {
    const focused = document.activeElement?.closest<HTMLElement>("[data-row]")?.dataset["row"];
    const at = keys.indexOf(focused ?? current.current ?? "");
    const next = keys[at === -1 ? 0 : Math.max(0, Math.min(keys.length - 1, at + by))];
    if (next === undefined) return;
    current.current = next;
    setWanted({ key: next });
  };
  useKeys({ j: () => move(1), k: () => move(-1) });

  useEffect(() => {
    if (wanted === null) return;
    list?.current?.reveal(keys.indexOf(wanted.key));
    let tries = 0;
    let waiting = 0;
    // A row that was out of sight is drawn a frame or two after it was revealed.
    const focus = () => {
      const row = frame.current?.querySelector<HTMLElement>(`[data-row="${CSS.escape(wanted.key)}"]`);
      if (row) row.focus({ preventScroll: list !== undefined });
      else if (tries++ < 10) waiting = requestAnimationFrame(focus);
    };
    focus();
    return () => cancelAnimationFrame(waiting);
    // Only a key press moves focus, not a list that changes.
  }, [wanted]);
}
