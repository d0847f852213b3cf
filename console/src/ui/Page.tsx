import { useEffect, type ReactNode } from "react";
import { useOpenInteractions } from "../client";
import { useHeadingFocus } from "../router";
import { useText } from "../text";
import { classes } from "./classes";
import style from "./Page.module.css";

interface PageProps {
  /** The heading, and the document's title. */
  title: string;
  /** What the heading shows, where that is more than words. */
  heading?: ReactNode;
  /** A line above the heading: where this page belongs. */
  above?: ReactNode;
  /** A line below the heading. */
  below?: ReactNode;
  /** Buttons beside the heading. */
  actions?: ReactNode;
  /** `reading` keeps lines short; `wide` uses what there is. */
  width?: "wide" | "reading";
  children: ReactNode;
}

/** The frame of every page: heading, document title, and focus for whoever arrives by keyboard. */
export function Page({ title, heading, above, below, actions, width = "wide", children }: PageProps) {
  const { t } = useText();
  const focus = useHeadingFocus<HTMLHeadingElement>();
  const waiting = useOpenInteractions().interactions.length;
  useEffect(() => {
    // A tab in the background shows by its title that somebody is waited for.
    document.title = `${waiting > 0 ? `(${waiting}) ` : ""}${title} · ${t.appName}`;
  }, [title, t, waiting]);
  return (
    <div className={classes(style["page"], style[width])}>
      <header className={style["head"]}>
        <div className={style["titles"]}>
          {above && <div className={style["above"]}>{above}</div>}
          <h1 ref={focus} tabIndex={-1} className={style["title"]}>
            {heading ?? title}
          </h1>
          {below && <div className={style["below"]}>{below}</div>}
        </div>
        {actions && <div className={style["actions"]}>{actions}</div>}
      </header>
      {children}
    </div>
  );
}
