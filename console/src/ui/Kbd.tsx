import style from "./Kbd.module.css";

/** A keyboard key. */
export function Kbd({ children }: { children: string }) {
  return <kbd className={style["key"]}>{children}</kbd>;
}
