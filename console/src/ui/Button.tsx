import type { ButtonHTMLAttributes, Ref } from "react";
import { classNames } from "./classNames";
import { Icon, type IconName } from "./Icon";
import { Tooltip } from "./Tooltip";
import style from "./Button.module.css";

interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  /** `primary` at most once per view; `quiet` has no border. */
  variant?: "primary" | "plain" | "quiet" | "danger";
  size?: "small" | "medium";
  icon?: IconName;
  /** Shows a spinner and disables the button. */
  busy?: boolean;
  ref?: Ref<HTMLButtonElement>;
}

/** A button with a label. */
export function Button({ variant = "plain", size = "medium", icon, busy, className, children, disabled, ...rest }: ButtonProps) {
  return (
    <button
      type="button"
      {...rest}
      disabled={disabled === true || busy === true}
      aria-busy={busy}
      className={classNames(style["button"], style[variant], style[size], className)}
    >
      {busy === true ? <span className={style["spinner"]} aria-hidden="true" /> : icon && <Icon name={icon} />}
      {children}
    </button>
  );
}

interface IconButtonProps extends Omit<ButtonHTMLAttributes<HTMLButtonElement>, "aria-label"> {
  icon: IconName;
  /** Label for screen readers and tooltip. */
  label: string;
  size?: "small" | "medium";
  ref?: Ref<HTMLButtonElement>;
}

/** A button with an icon only. */
export function IconButton({ icon, label, size = "medium", className, ...rest }: IconButtonProps) {
  return (
    <Tooltip text={label}>
      <button type="button" {...rest} aria-label={label} className={classNames(style["icon"], style[size], className)}>
        <Icon name={icon} />
      </button>
    </Tooltip>
  );
}
