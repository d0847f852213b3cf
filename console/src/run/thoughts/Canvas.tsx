import { useEffect, useLayoutEffect, useRef, useState, type KeyboardEvent, type ReactNode } from "react";
import { useText } from "../../text";
import { IconButton } from "../../ui";
import { card, neighbourOf, type Direction, type Layout } from "./layout";
import style from "./Canvas.module.css";

interface CanvasProps {
  /** Label for screen readers. */
  label: string;
  /** ARIA role: a graph is a list whose items name their neighbours. */
  role: "tree" | "list";
  layout: Layout;
  /** Node ids in order of creation. */
  ids: readonly string[];
  /** The edges, drawn below the nodes. */
  lines: ReactNode;
  node(id: string, attributes: NodeAttributes): ReactNode;
  selected: string | undefined;
  onSelect(id: string): void;
  /** The current node, or the last one. */
  active: string | undefined;
  /** Whether the active node is scrolled into view, unless a person has selected another. */
  isLive: boolean;
  /** Nodes that the right arrow key prefers. */
  preferred?: ReadonlySet<string>;
}

/** Attributes for keyboard navigation of a node. */
export interface NodeAttributes {
  id: string;
  tabIndex: number;
  onClick(): void;
  onFocus(): void;
}

const domId = (id: string) => `thought-${id}`;

/** Focuses a node. */
export function focusThought(id: string): void {
  document.getElementById(domId(id))?.focus({ preventScroll: true });
}

const directions: Readonly<Record<string, Direction>> = { ArrowLeft: "left", ArrowRight: "right", ArrowUp: "up", ArrowDown: "down" };
const [minScale, maxScale] = [0.4, 1.6];
/** Minimum scale of the initial fit, so that texts are readable; a larger drawing scrolls. */
const minReadableScale = 0.85;
const padding = 20;

/** A drawing that scrolls and zooms; arrow keys move along its edges. */
export function Canvas({ label, role, layout, ids, lines, node, selected, onSelect, active, isLive, preferred }: CanvasProps) {
  const { t } = useText();
  const pane = useRef<HTMLDivElement>(null);
  const [scale, setScale] = useState(1);
  const isZoomed = useRef(false);
  const [focused, setFocused] = useState<string>();
  const tabStop = focused ?? selected ?? ids[0];

  const zoom = (next: number) => {
    isZoomed.current = true;
    setScale(Math.max(minScale, Math.min(maxScale, next)));
  };
  const fitScale = () => {
    const { clientWidth = 0, clientHeight = 0 } = pane.current ?? {};
    return Math.min(1, (clientWidth - 2 * padding) / layout.width, (clientHeight - 2 * padding) / layout.height);
  };
  const reveal = (id: string | undefined, isSmooth: boolean) => {
    const [scroller, position] = [pane.current, id === undefined ? undefined : layout.nodes.get(id)];
    if (!scroller || position === undefined) return;
    const left = nearestScroll(scroller.scrollLeft, scroller.clientWidth, position.x * scale + padding, card.width * scale);
    const top = nearestScroll(scroller.scrollTop, scroller.clientHeight, position.y * scale + padding, card.height * scale);
    const prefersReducedMotion = matchMedia("(prefers-reduced-motion: reduce)").matches;
    scroller.scrollTo({ left, top, behavior: isSmooth && !prefersReducedMotion ? "smooth" : "auto" });
  };

  useLayoutEffect(() => {
    if (!isZoomed.current) setScale(Math.max(minReadableScale, fitScale()));
  }, [layout]);

  // Keeps the active node in view, unless a person has selected another.
  useLayoutEffect(() => {
    if (isLive && focused === undefined && selected === undefined) reveal(active, true);
  }, [active, layout, scale]);

  // The panel may cover the selected node.
  useLayoutEffect(() => reveal(selected, false), [selected]);

  useEffect(() => {
    const scroller = pane.current;
    if (!scroller) return;
    const onWheel = (event: WheelEvent) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      isZoomed.current = true;
      setScale((before) => Math.max(minScale, Math.min(maxScale, before * Math.exp(-event.deltaY / 300))));
    };
    scroller.addEventListener("wheel", onWheel, { passive: false });
    return () => scroller.removeEventListener("wheel", onWheel);
  }, []);

  const focusNode = (id: string | undefined) => {
    if (id === undefined) return;
    setFocused(id);
    reveal(id, false);
    focusThought(id);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.altKey || event.ctrlKey || event.metaKey || tabStop === undefined) return;
    const direction = directions[event.key];
    if (direction !== undefined) focusNode(neighbourOf(layout, tabStop, direction, preferred));
    else if (event.key === "Home") focusNode(ids[0]);
    else if (event.key === "End") focusNode(active ?? ids.at(-1));
    else if (event.key === "Enter" || event.key === " ") onSelect(tabStop);
    else if (event.key === "+" || event.key === "=") zoom(scale * 1.2);
    else if (event.key === "-") zoom(scale / 1.2);
    else if (event.key === "0") zoom(1);
    else return;
    event.preventDefault();
  };

  return (
    <div className={style["canvas"]}>
      <div ref={pane} className={style["pane"]} onKeyDown={onKeyDown}>
        <div className={style["space"]} style={{ width: layout.width * scale + 2 * padding, height: layout.height * scale + 2 * padding }}>
          <div className={style["drawing"]} style={{ width: layout.width, height: layout.height, transform: `scale(${scale})` }}>
            <svg className={style["lines"]} width={layout.width} height={layout.height + 24} aria-hidden="true">
              {lines}
            </svg>
            <div role={role} aria-label={label}>
              {ids.map((id) => {
                const position = layout.nodes.get(id);
                if (position === undefined) return null;
                const attributes = { id: domId(id), tabIndex: id === tabStop ? 0 : -1, onClick: () => onSelect(id), onFocus: () => setFocused(id) };
                return (
                  <div
                    key={id}
                    role={role === "list" ? "listitem" : "presentation"}
                    className={style["node"]}
                    style={{ width: card.width, height: card.height, transform: `translate(${position.x}px, ${position.y}px)` }}
                  >
                    {node(id, attributes)}
                  </div>
                );
              })}
            </div>
          </div>
        </div>
      </div>
      <div className={style["zoom"]}>
        <IconButton icon="minus" label={t.inspect.zoomOut} size="small" onClick={() => zoom(scale / 1.2)} />
        <IconButton icon="plus" label={t.inspect.zoomIn} size="small" onClick={() => zoom(scale * 1.2)} />
        <IconButton icon="screen" label={t.inspect.fit} size="small" onClick={() => zoom(fitScale())} />
      </div>
    </div>
  );
}

/** Returns the nearest scroll position that shows a range with padding. */
function nearestScroll(current: number, viewport: number, from: number, length: number): number {
  if (from - padding < current) return Math.max(0, from - padding);
  return Math.max(current, from + length + padding - viewport);
}
