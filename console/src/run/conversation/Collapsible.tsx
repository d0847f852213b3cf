import { useEffect, useState, type ReactNode } from "react";
import { classNames } from "../../ui";
import style from "./Conversation.module.css";

/** Duration of the CSS transition in milliseconds, with a margin. */
const closeDuration = 200;

/** Opens and closes its content with a transition; closed content is not rendered. */
export function Collapsible({ open, id, children }: { open: boolean; id: string; children: ReactNode }) {
  const [isRendered, setRendered] = useState(open);
  const [before, setBefore] = useState(open);
  // Content that is open when it is rendered again is not animated.
  const [isAnimated, setAnimated] = useState(false);
  if (open !== before) {
    setBefore(open);
    setAnimated(true);
    if (open) setRendered(true);
  }
  useEffect(() => {
    if (open) return;
    const timer = setTimeout(() => setRendered(false), closeDuration);
    return () => clearTimeout(timer);
  }, [open]);
  if (!open && !isRendered) return null;
  return (
    <div id={id} className={classNames(style["collapsible"], open && style["expanded"], isAnimated && style["animated"])} inert={!open}>
      <div className={style["collapsibleInner"]}>{children}</div>
    </div>
  );
}
