import style from "./Kbd.module.css";

/** Shows a key. */
export function Kbd({ children }: { children: string }) {
  return <kbd className={style["key"]}>{children}</kbd>;
}
