import { useEffect, useId, useRef, useState, type ReactNode } from "react";
import style from "./Tooltip.module.css";

interface TooltipProps {
  text: string;
  children: ReactNode;
  className?: string | undefined;
}

const delay = 350;

/** Shows a few words near what it wraps, on hover and on keyboard focus. Escape hides them. */
export function Tooltip({ text, children, className }: TooltipProps) {
  const anchor = useRef<HTMLSpanElement>(null);
  const bubble = useRef<HTMLSpanElement>(null);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const [open, setOpen] = useState(false);
  const id = useId();

  const show = () => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setOpen(true), delay);
  };
  const hide = () => {
    clearTimeout(timer.current);
    setOpen(false);
  };
  useEffect(() => () => clearTimeout(timer.current), []);

  useEffect(() => {
    const target = anchor.current?.firstElementChild ?? anchor.current;
    const shown = bubble.current;
    if (!open || !target || !shown) return;
    // The top layer: no frame with hidden overflow cuts it off.
    shown.showPopover?.();
    const around = target.getBoundingClientRect();
    const size = shown.getBoundingClientRect();
    const below = around.bottom + 6 + size.height <= innerHeight;
    const left = around.left + around.width / 2 - size.width / 2;
    shown.style.left = `${Math.max(8, Math.min(left, innerWidth - size.width - 8))}px`;
    shown.style.top = `${below ? around.bottom + 6 : around.top - 6 - size.height}px`;
    const escape = (event: KeyboardEvent) => event.key === "Escape" && setOpen(false);
    const away = () => setOpen(false);
    document.addEventListener("keydown", escape);
    document.addEventListener("scroll", away, true);
    return () => {
      document.removeEventListener("keydown", escape);
      document.removeEventListener("scroll", away, true);
    };
  }, [open]);

  return (
    <span
      ref={anchor}
      className={className ?? style["anchor"]}
      onPointerEnter={(event) => event.pointerType === "mouse" && show()}
      onPointerLeave={hide}
      onPointerDown={hide}
      onFocus={(event) => event.target.matches(":focus-visible") && show()}
      onBlur={hide}
    >
      {children}
      {open && (
        <span ref={bubble} id={id} role="tooltip" popover="manual" className={style["bubble"]}>
          {text}
        </span>
      )}
    </span>
  );
}
