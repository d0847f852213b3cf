import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useImperativeHandle, useRef, type HTMLAttributes, type ReactNode, type Ref, type RefObject } from "react";

/** What can be asked of a list from outside. */
export interface VirtualListHandle {
  /** Brings a row into view, with as little movement as is needed. */
  reveal(index: number, align?: "auto" | "start" | "center" | "end"): void;
}

interface VirtualListProps extends Omit<HTMLAttributes<HTMLDivElement>, "children"> {
  count: number;
  /** The height of a row before it was measured. */
  estimate: number | ((index: number) => number);
  row(index: number): ReactNode;
  /** Names a row, so that its height stays its own when rows come in before it. */
  keyOf(index: number): string | number;
  /** What scrolls: the nearest parent with the attribute `data-scroller` unless it is given. */
  scroller?: RefObject<HTMLElement | null>;
  /** Called when the last rows come near. */
  onEnd?: (() => void) | undefined;
  overscan?: number;
  /** How much of the top something covers, for rows that are revealed. */
  margin?: number;
  handle?: Ref<VirtualListHandle>;
  /** Attributes of a row's frame: its role, for one. */
  rowProps?: (index: number) => HTMLAttributes<HTMLDivElement>;
}

/** Draws only the rows that can be seen. */
export function VirtualList({
  count,
  estimate,
  row,
  keyOf,
  scroller,
  onEnd,
  overscan = 12,
  margin = 0,
  handle,
  rowProps,
  ...rest
}: VirtualListProps) {
  const frame = useRef<HTMLDivElement>(null);
  const offset = useRef(0);
  const element = () => scroller?.current ?? frame.current?.closest<HTMLElement>("[data-scroller]") ?? null;
  const virtual = useVirtualizer({
    count,
    getScrollElement: element,
    estimateSize: typeof estimate === "number" ? () => estimate : estimate,
    getItemKey: keyOf,
    overscan,
    scrollMargin: offset.current,
    scrollPaddingStart: margin,
    // Rows are measured while scrolling; flushing each of them at once would make one long task of it.
    useFlushSync: false,
  });

  useEffect(() => {
    const around = element();
    if (!around || !frame.current) return;
    const top = frame.current.getBoundingClientRect().top - around.getBoundingClientRect().top + around.scrollTop;
    if (Math.abs(top - offset.current) > 1) {
      offset.current = top;
      virtual.measure();
    }
  });

  useImperativeHandle(handle, () => ({
    reveal: (index, align = "auto") => virtual.scrollToIndex(index, { align }),
  }));

  const items = virtual.getVirtualItems();
  const last = items.at(-1)?.index ?? -1;
  useEffect(() => {
    if (count > 0 && last >= count - 1 - overscan) onEnd?.();
  }, [last, count, overscan, onEnd]);

  return (
    <div {...rest} ref={frame} style={{ position: "relative", height: virtual.getTotalSize() }}>
      {items.map((item) => (
        <div
          {...rowProps?.(item.index)}
          key={item.key}
          ref={virtual.measureElement}
          data-index={item.index}
          style={{
            position: "absolute",
            insetInline: 0,
            top: 0,
            transform: `translateY(${item.start - virtual.options.scrollMargin}px)`,
          }}
        >
          {row(item.index)}
        </div>
      ))}
    </div>
  );
}
