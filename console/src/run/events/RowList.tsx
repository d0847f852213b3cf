import { useEffect, useImperativeHandle, useLayoutEffect, useRef, useState, type HTMLAttributes, type ReactNode, type Ref } from "react";
import { rowAt } from "./timeline";
import style from "./RowList.module.css";

/** Imperative handle of a row list. */
export interface RowListHandle {
  /** Scrolls a row into view with the smallest movement. */
  reveal(row: number): void;
  /** Focuses the list. */
  focus(): void;
}

interface RowListProps extends Omit<HTMLAttributes<HTMLDivElement>, "children"> {
  count: number;
  /** Top of each row in pixels, and the bottom of the last one. May grow in place. */
  tops: readonly number[];
  row(index: number): ReactNode;
  keyOf(index: number): string | number;
  /** Whether the list sticks to its end. */
  follow: boolean;
  /** Called when a person scrolls to the end, or away from it. */
  onFollow(follow: boolean): void;
  handle?: Ref<RowListHandle>;
  className?: string | undefined;
}

/** Rows rendered outside of the viewport. */
const overscan = 10;
/** Distance to the end in pixels that counts as being at the end. */
const endTolerance = 24;

/**
 * A virtualized list of rows with known heights: nothing is measured, and a new row costs only itself.
 */
export function RowList({ count, tops, row, keyOf, follow, onFollow, handle, className, ...rest }: RowListProps) {
  const pane = useRef<HTMLDivElement>(null);
  const [viewport, setViewport] = useState({ top: 0, height: 800 });
  const total = tops[count] ?? 0;
  const following = useRef(follow);
  following.current = follow;

  const updateViewport = () => {
    const { scrollTop = 0, clientHeight = 0 } = pane.current ?? {};
    setViewport((before) => (before.top === scrollTop && before.height === clientHeight ? before : { top: scrollTop, height: clientHeight }));
  };

  useLayoutEffect(() => {
    if (pane.current && follow) pane.current.scrollTop = pane.current.scrollHeight;
    // Reading the scroll position forces a layout; rows below the viewport change nothing.
    if (follow || total < viewport.top + viewport.height) updateViewport();
  }, [follow, total]);

  useEffect(() => {
    if (!pane.current) return;
    const observer = new ResizeObserver(() => {
      if (pane.current && following.current) pane.current.scrollTop = pane.current.scrollHeight;
      updateViewport();
    });
    observer.observe(pane.current);
    return () => observer.disconnect();
  }, []);
  useImperativeHandle(handle, () => ({
    focus: () => pane.current?.focus(),
    reveal(index) {
      const scroller = pane.current;
      if (!scroller) return;
      const [top, bottom] = [tops[index] ?? 0, tops[index + 1] ?? 0];
      if (top < scroller.scrollTop) scroller.scrollTop = top;
      else if (bottom > scroller.scrollTop + scroller.clientHeight) scroller.scrollTop = bottom - scroller.clientHeight;
    },
  }));

  const onScroll = () => {
    updateViewport();
    if (!pane.current) return;
    const { scrollHeight, scrollTop, clientHeight } = pane.current;
    const isAtEnd = scrollHeight - scrollTop - clientHeight < endTolerance;
    if (isAtEnd !== follow) onFollow(isAtEnd);
  };

  const first = Math.max(0, rowAt(tops, viewport.top) - overscan);
  const last = Math.min(count - 1, rowAt(tops, viewport.top + viewport.height) + overscan);
  const rows: ReactNode[] = [];
  for (let index = first; index <= last; index++) {
    const top = tops[index] ?? 0;
    rows.push(
      <div key={keyOf(index)} className={style["row"]} role="presentation" style={{ top, height: (tops[index + 1] ?? top) - top }}>
        {row(index)}
      </div>,
    );
  }
  return (
    <div {...rest} ref={pane} tabIndex={0} className={`${style["pane"] ?? ""} ${className ?? ""}`} onScroll={onScroll}>
      <div role="presentation" className={style["space"]} style={{ height: total }}>
        {rows}
      </div>
    </div>
  );
}
