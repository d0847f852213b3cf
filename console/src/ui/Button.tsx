import type { ButtonHTMLAttributes, Ref } from "react";
import { classes } from "./classes";
import { Icon, type IconName } from "./Icon";
import { Tooltip } from "./Tooltip";
import style from "./Button.module.css";

interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  /** `primary` once a view at most; `quiet` has no frame. */
  variant?: "primary" | "plain" | "quiet" | "danger";
  size?: "small" | "medium";
  icon?: IconName;
  /** Shows that its act is under way, and takes no second click. */
  busy?: boolean;
  ref?: Ref<HTMLButtonElement>;
}

/** A button with words. */
export function Button({ variant = "plain", size = "medium", icon, busy, className, children, disabled, ...rest }: ButtonProps) {
  return (
    <button
      type="button"
      {...rest}
      disabled={disabled === true || busy === true}
      aria-busy={busy}
      className={classes(style["button"], style[variant], style[size], className)}
    >
      {busy === true ? <span className={style["spinner"]} aria-hidden="true" /> : icon && <Icon name={icon} />}
      {children}
    </button>
  );
}

interface IconButtonProps extends Omit<ButtonHTMLAttributes<HTMLButtonElement>, "aria-label"> {
  icon: IconName;
  /** What it does: its name for screen readers, and its tooltip. */
  label: string;
  size?: "small" | "medium";
  ref?: Ref<HTMLButtonElement>;
}

/** A button that is only an icon. */
export function IconButton({ icon, label, size = "medium", className, ...rest }: IconButtonProps) {
  return (
    <Tooltip text={label}>
      <button type="button" {...rest} aria-label={label} className={classes(style["icon"], style[size], className)}>
        <Icon name={icon} />
      </button>
    </Tooltip>
  );
}
