import { useEffect, useId, useRef, type ReactNode } from "react";
import { useText } from "../text";
import { IconButton } from "./Button";
import style from "./Dialog.module.css";

interface DialogProps {
  open: boolean;
  onClose(): void;
  title: string;
  children: ReactNode;
  /** Buttons in the footer. */
  actions?: ReactNode;
}

/** A native modal dialog: the browser traps and restores the focus. */
export function Dialog({ open, onClose, title, children, actions }: DialogProps) {
  const { t } = useText();
  const dialog = useRef<HTMLDialogElement>(null);
  const heading = useId();
  useEffect(() => {
    const element = dialog.current;
    if (open && element && !element.open) element.showModal();
    if (!open && element?.open) element.close();
  }, [open]);
  return (
    <dialog
      ref={dialog}
      className={style["dialog"]}
      aria-labelledby={heading}
      onClose={onClose}
      // A click on the backdrop targets the dialog element itself.
      onClick={(event) => event.target === dialog.current && onClose()}
    >
      {open && (
        <div className={style["body"]}>
          <header className={style["head"]}>
            <h2 id={heading}>{title}</h2>
            <IconButton icon="cross" label={t.action.close} size="small" onClick={onClose} />
          </header>
          {children}
          {actions && <footer className={style["foot"]}>{actions}</footer>}
        </div>
      )}
    </dialog>
  );
}
