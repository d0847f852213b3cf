import { useEffect, useRef, useState, type RefObject } from "react";
import { useKeys } from "../shell/useKeys";
import type { VirtualListHandle } from "./VirtualList";

/**
 * Moves the focus through the rows of a list with `j` and `k`. The focused element of a row has the attribute
 * `data-row` with the row's key.
 */
export function useRowKeys(keys: readonly string[], container: RefObject<HTMLElement | null>, list?: RefObject<VirtualListHandle | null>) {
  const [target, setTarget] = useState<{ key: string } | null>(null);
  const current = useRef<string | null>(null);

  const move = (by: number) => {
    const focused = document.activeElement?.closest<HTMLElement>("[data-row]")?.dataset["row"];
    const at = keys.indexOf(focused ?? current.current ?? "");
    const next = keys[at === -1 ? 0 : Math.max(0, Math.min(keys.length - 1, at + by))];
    if (next === undefined) return;
    current.current = next;
    setTarget({ key: next });
  };
  useKeys({ j: () => move(1), k: () => move(-1) });

  useEffect(() => {
    if (target === null) return;
    list?.current?.reveal(keys.indexOf(target.key));
    let attempts = 0;
    let frameRequest = 0;
    // A row outside of the viewport is rendered some animation frames later.
    const focus = () => {
      const row = container.current?.querySelector<HTMLElement>(`[data-row="${CSS.escape(target.key)}"]`);
      if (row) row.focus({ preventScroll: list !== undefined });
      else if (attempts++ < 10) frameRequest = requestAnimationFrame(focus);
    };
    focus();
    return () => cancelAnimationFrame(frameRequest);
    // Only a key press moves the focus, not a change of the list.
  }, [target]);
}
