import { useEffect, type ReactNode } from "react";
import { useOpenInteractions } from "../client";
import { useHeadingFocus } from "../router";
import { useText } from "../text";
import { classNames } from "./classNames";
import style from "./Page.module.css";

interface PageProps {
  /** The heading, and the document's title. */
  title: string;
  /** Content of the heading. Default: the title. */
  heading?: ReactNode;
  /** Line above the heading with the parent page. */
  above?: ReactNode;
  /** Line below the heading. */
  below?: ReactNode;
  /** Buttons next to the heading. */
  actions?: ReactNode;
  /** `reading` limits the line length; `wide` uses the full width. */
  width?: "wide" | "reading";
  children: ReactNode;
}

/** Layout of a page: heading, document title and focus after navigation. */
export function Page({ title, heading, above, below, actions, width = "wide", children }: PageProps) {
  const { t } = useText();
  const focus = useHeadingFocus<HTMLHeadingElement>();
  const openCount = useOpenInteractions().interactions.length;
  useEffect(() => {
    // The title of a background tab shows the number of open interactions.
    document.title = `${openCount > 0 ? `(${openCount}) ` : ""}${title} · ${t.appName}`;
  }, [title, t, openCount]);
  return (
    <div className={classNames(style["page"], style[width])}>
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
