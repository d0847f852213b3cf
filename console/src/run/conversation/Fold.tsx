import { useEffect, useState, type ReactNode } from "react";
import { classes } from "../../ui";
import style from "./Conversation.module.css";

/** As long as the transition in the style sheet takes, and a little more. */
const closing = 200;

/** Opens and closes with a short transition; what is closed is not drawn. */
export function Fold({ open, id, children }: { open: boolean; id: string; children: ReactNode }) {
  const [drawn, setDrawn] = useState(open);
  const [before, setBefore] = useState(open);
  // What is open when it comes into sight again has not just been opened.
  const [moves, setMoves] = useState(false);
  if (open !== before) {
    setBefore(open);
    setMoves(true);
    if (open) setDrawn(true);
  }
  useEffect(() => {
    if (open) return;
    const timer = setTimeout(() => setDrawn(false), closing);
    return () => clearTimeout(timer);
  }, [open]);
  if (!open && !drawn) return null;
  return (
    <div id={id} className={classes(style["fold"], open && style["unfolded"], moves && style["moves"])} inert={!open}>
      <div className={style["foldInner"]}>{children}</div>
    </div>
  );
}
