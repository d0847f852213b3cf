import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useImperativeHandle, useRef, type HTMLAttributes, type ReactNode, type Ref, type RefObject } from "react";

/** Imperative handle of a virtual list. */
export interface VirtualListHandle {
  /** Scrolls a row into view with the smallest movement. */
  reveal(index: number, align?: "auto" | "start" | "center" | "end"): void;
}

interface VirtualListProps extends Omit<HTMLAttributes<HTMLDivElement>, "children"> {
  count: number;
  /** Estimated height of a row before it is measured. */
  estimate: number | ((index: number) => number);
  row(index: number): ReactNode;
  /** Returns the key of a row, so that measured heights move with it. */
  keyOf(index: number): string | number;
  /** Scroll container. Default: the nearest parent with `data-scroller`. */
  scroller?: RefObject<HTMLElement | null>;
  /** Called when the end of the list comes near. */
  onEnd?: (() => void) | undefined;
  overscan?: number;
  /** Height of a sticky header that covers the top. */
  margin?: number;
  handle?: Ref<VirtualListHandle>;
  /** Attributes of a row's element. */
  rowProps?: (index: number) => HTMLAttributes<HTMLDivElement>;
}

/** A virtualized list with measured rows. */
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
  const container = useRef<HTMLDivElement>(null);
  const offset = useRef(0);
  const element = () => scroller?.current ?? container.current?.closest<HTMLElement>("[data-scroller]") ?? null;
  const virtual = useVirtualizer({
    count,
    getScrollElement: element,
    estimateSize: typeof estimate === "number" ? () => estimate : estimate,
    getItemKey: keyOf,
    overscan,
    scrollMargin: offset.current,
    scrollPaddingStart: margin,
    // Rows are measured while scrolling; synchronous flushes would block the page.
    useFlushSync: false,
  });

  useEffect(() => {
    const scrollElement = element();
    if (!scrollElement || !container.current) return;
    const top = container.current.getBoundingClientRect().top - scrollElement.getBoundingClientRect().top + scrollElement.scrollTop;
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
    <div {...rest} ref={container} style={{ position: "relative", height: virtual.getTotalSize() }}>
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
