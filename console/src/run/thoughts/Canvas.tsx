import { useEffect, useLayoutEffect, useRef, useState, type KeyboardEvent, type ReactNode } from "react";
import { useText } from "../../text";
import { IconButton } from "../../ui";
import { card, neighbour, type Direction, type Placed } from "./place";
import style from "./Canvas.module.css";

interface CanvasProps {
  /** What is drawn, for screen readers. */
  label: string;
  /** A tree says so; a graph is a list whose items name what they are joined to. */
  role: "tree" | "list";
  placed: Placed;
  /** The nodes in the order of their coming. */
  ids: readonly string[];
  /** The lines, drawn below the nodes. */
  lines: ReactNode;
  node(id: string, attributes: NodeAttributes): ReactNode;
  selected: string | undefined;
  onSelect(id: string): void;
  /** The node that is worked on, or was last. */
  active: string | undefined;
  /** Whether it is brought into sight while nobody has chosen another; what is over is read from its start. */
  isLive: boolean;
  /** Nodes that a key to the right prefers. */
  preferred?: ReadonlySet<string>;
}

/** What makes a node reachable with the keyboard. */
export interface NodeAttributes {
  id: string;
  tabIndex: number;
  onClick(): void;
  onFocus(): void;
}

const domId = (id: string) => `thought-${id}`;

/** Moves the keyboard to a node. */
export function focusThought(id: string): void {
  document.getElementById(domId(id))?.focus({ preventScroll: true });
}

const directions: Readonly<Record<string, Direction>> = { ArrowLeft: "left", ArrowRight: "right", ArrowUp: "up", ArrowDown: "down" };
const [smallest, largest] = [0.4, 1.6];
/** Smaller than this, words cannot be read, so that a drawing that is still too large scrolls. */
const readable = 0.85;
const edge = 20;

/** A drawing that scrolls and zooms, whose nodes the arrow keys walk along the lines. */
export function Canvas({ label, role, placed, ids, lines, node, selected, onSelect, active, isLive, preferred }: CanvasProps) {
  const { t } = useText();
  const pane = useRef<HTMLDivElement>(null);
  const [scale, setScale] = useState(1);
  const isZoomed = useRef(false);
  const [focused, setFocused] = useState<string>();
  const stop = focused ?? selected ?? ids[0];

  const zoom = (next: number) => {
    isZoomed.current = true;
    setScale(Math.max(smallest, Math.min(largest, next)));
  };
  const fitting = () => {
    const { clientWidth = 0, clientHeight = 0 } = pane.current ?? {};
    return Math.min(1, (clientWidth - 2 * edge) / placed.width, (clientHeight - 2 * edge) / placed.height);
  };
  const reveal = (id: string | undefined, isSmooth: boolean) => {
    const [around, at] = [pane.current, id === undefined ? undefined : placed.nodes.get(id)];
    if (!around || at === undefined) return;
    const left = nearest(around.scrollLeft, around.clientWidth, at.x * scale + edge, card.width * scale);
    const top = nearest(around.scrollTop, around.clientHeight, at.y * scale + edge, card.height * scale);
    const isCalm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    around.scrollTo({ left, top, behavior: isSmooth && !isCalm ? "smooth" : "auto" });
  };

  useLayoutEffect(() => {
    if (!isZoomed.current) setScale(Math.max(readable, fitting()));
  }, [placed]);

  // A graph that grows keeps the node that is worked on in sight, unless a person looks at another.
  useLayoutEffect(() => {
    if (isLive && focused === undefined && selected === undefined) reveal(active, true);
  }, [active, placed, scale]);

  // The panel that opens beside the drawing may cover the node that it is about.
  useLayoutEffect(() => reveal(selected, false), [selected]);

  useEffect(() => {
    const around = pane.current;
    if (!around) return;
    const wheel = (event: WheelEvent) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      isZoomed.current = true;
      setScale((before) => Math.max(smallest, Math.min(largest, before * Math.exp(-event.deltaY / 300))));
    };
    around.addEventListener("wheel", wheel, { passive: false });
    return () => around.removeEventListener("wheel", wheel);
  }, []);

  const go = (id: string | undefined) => {
    if (id === undefined) return;
    setFocused(id);
    reveal(id, false);
    focusThought(id);
  };
  const pressed = (event: KeyboardEvent) => {
    if (event.altKey || event.ctrlKey || event.metaKey || stop === undefined) return;
    const direction = directions[event.key];
    if (direction !== undefined) go(neighbour(placed, stop, direction, preferred));
    else if (event.key === "Home") go(ids[0]);
    else if (event.key === "End") go(active ?? ids.at(-1));
    else if (event.key === "Enter" || event.key === " ") onSelect(stop);
    else if (event.key === "+" || event.key === "=") zoom(scale * 1.2);
    else if (event.key === "-") zoom(scale / 1.2);
    else if (event.key === "0") zoom(1);
    else return;
    event.preventDefault();
  };

  return (
    <div className={style["canvas"]}>
      <div ref={pane} className={style["pane"]} onKeyDown={pressed}>
        <div className={style["space"]} style={{ width: placed.width * scale + 2 * edge, height: placed.height * scale + 2 * edge }}>
          <div className={style["drawing"]} style={{ width: placed.width, height: placed.height, transform: `scale(${scale})` }}>
            <svg className={style["lines"]} width={placed.width} height={placed.height + 24} aria-hidden="true">
              {lines}
            </svg>
            <div role={role} aria-label={label}>
              {ids.map((id) => {
                const at = placed.nodes.get(id);
                if (at === undefined) return null;
                const attributes = { id: domId(id), tabIndex: id === stop ? 0 : -1, onClick: () => onSelect(id), onFocus: () => setFocused(id) };
                return (
                  <div
                    key={id}
                    role={role === "list" ? "listitem" : "presentation"}
                    className={style["node"]}
                    style={{ width: card.width, height: card.height, transform: `translate(${at.x}px, ${at.y}px)` }}
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
        <IconButton icon="screen" label={t.inspect.fit} size="small" onClick={() => zoom(fitting())} />
      </div>
    </div>
  );
}

/** Finds the scroll that shows something with some room around it, nearest to where the pane stands. */
function nearest(now: number, seen: number, from: number, length: number): number {
  if (from - edge < now) return Math.max(0, from - edge);
  return Math.max(now, from + length + edge - seen);
}
