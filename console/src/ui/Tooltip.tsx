import { useEffect, useId, useRef, useState, type ReactNode } from "react";
import style from "./Tooltip.module.css";

interface TooltipProps {
  text: string;
  children: ReactNode;
  className?: string | undefined;
}

const showDelay = 350;

/** A tooltip on hover and keyboard focus; Escape hides it. */
export function Tooltip({ text, children, className }: TooltipProps) {
  const anchor = useRef<HTMLSpanElement>(null);
  const bubble = useRef<HTMLSpanElement>(null);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const [open, setOpen] = useState(false);
  const id = useId();

  const show = () => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setOpen(true), showDelay);
  };
  const hide = () => {
    clearTimeout(timer.current);
    setOpen(false);
  };
  useEffect(() => () => clearTimeout(timer.current), []);

  useEffect(() => {
    const target = anchor.current?.firstElementChild ?? anchor.current;
    const element = bubble.current;
    if (!open || !target || !element) return;
    // In the top layer, hidden overflow does not clip it.
    element.showPopover?.();
    const targetRect = target.getBoundingClientRect();
    const size = element.getBoundingClientRect();
    const below = targetRect.bottom + 6 + size.height <= innerHeight;
    const left = targetRect.left + targetRect.width / 2 - size.width / 2;
    element.style.left = `${Math.max(8, Math.min(left, innerWidth - size.width - 8))}px`;
    element.style.top = `${below ? targetRect.bottom + 6 : targetRect.top - 6 - size.height}px`;
    const closeOnEscape = (event: KeyboardEvent) => event.key === "Escape" && setOpen(false);
    const closeOnScroll = () => setOpen(false);
    document.addEventListener("keydown", closeOnEscape);
    document.addEventListener("scroll", closeOnScroll, true);
    return () => {
      document.removeEventListener("keydown", closeOnEscape);
      document.removeEventListener("scroll", closeOnScroll, true);
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
