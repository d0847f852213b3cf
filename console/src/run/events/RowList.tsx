import { useEffect, useImperativeHandle, useLayoutEffect, useRef, useState, type HTMLAttributes, type ReactNode, type Ref } from "react";
import { rowAt } from "./timeline";
import style from "./RowList.module.css";

/** What can be asked of the rows from outside. */
export interface RowListHandle {
  /** Brings a row into view, with as little movement as is needed. */
  reveal(row: number): void;
  /** Moves the keyboard here. */
  focus(): void;
}

interface RowListProps extends Omit<HTMLAttributes<HTMLDivElement>, "children"> {
  count: number;
  /** Where each row begins, in pixels, and where the last one ends. It may grow in place. */
  tops: readonly number[];
  row(index: number): ReactNode;
  keyOf(index: number): string | number;
  /** Whether the end stays in sight while rows come in. */
  follow: boolean;
  /** Is told when a person scrolls to the end, or away from it. */
  onFollow(follow: boolean): void;
  handle?: Ref<RowListHandle>;
  className?: string | undefined;
}

/** Rows that are drawn beyond the edge, so that a quick scroll shows no emptiness. */
const beyond = 10;
/** So near the end counts as being at it, in pixels. */
const nearly = 24;

/**
 * Draws only the rows that can be seen. Their heights are known, so that nothing is measured and a new row costs
 * nothing but itself.
 */
export function RowList({ count, tops, row, keyOf, follow, onFollow, handle, className, ...rest }: RowListProps) {
  const pane = useRef<HTMLDivElement>(null);
  const [seen, setSeen] = useState({ top: 0, height: 800 });
  const total = tops[count] ?? 0;
  const following = useRef(follow);
  following.current = follow;

  const look = () => {
    const { scrollTop = 0, clientHeight = 0 } = pane.current ?? {};
    setSeen((before) => (before.top === scrollTop && before.height === clientHeight ? before : { top: scrollTop, height: clientHeight }));
  };

  useLayoutEffect(() => {
    if (pane.current && follow) pane.current.scrollTop = pane.current.scrollHeight;
    // Asking where the pane stands lays out the whole page; rows that come in below change nothing.
    if (follow || total < seen.top + seen.height) look();
  }, [follow, total]);

  useEffect(() => {
    if (!pane.current) return;
    const watch = new ResizeObserver(() => {
      if (pane.current && following.current) pane.current.scrollTop = pane.current.scrollHeight;
      look();
    });
    watch.observe(pane.current);
    return () => watch.disconnect();
  }, []);
  useImperativeHandle(handle, () => ({
    focus: () => pane.current?.focus(),
    reveal(index) {
      const around = pane.current;
      if (!around) return;
      const [top, bottom] = [tops[index] ?? 0, tops[index + 1] ?? 0];
      if (top < around.scrollTop) around.scrollTop = top;
      else if (bottom > around.scrollTop + around.clientHeight) around.scrollTop = bottom - around.clientHeight;
    },
  }));

  const scrolled = () => {
    look();
    if (!pane.current) return;
    const { scrollHeight, scrollTop, clientHeight } = pane.current;
    const isAtEnd = scrollHeight - scrollTop - clientHeight < nearly;
    if (isAtEnd !== follow) onFollow(isAtEnd);
  };

  const first = Math.max(0, rowAt(tops, seen.top) - beyond);
  const last = Math.min(count - 1, rowAt(tops, seen.top + seen.height) + beyond);
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
    <div {...rest} ref={pane} tabIndex={0} className={`${style["pane"] ?? ""} ${className ?? ""}`} onScroll={scrolled}>
      <div role="presentation" className={style["space"]} style={{ height: total }}>
        {rows}
      </div>
    </div>
  );
}
