import type { ReactNode } from "react";
import { Link, type Route } from "../router";
import { classes } from "./classes";
import style from "./Tabs.module.css";

interface TabsProps<T extends string> {
  label: string;
  current: T;
  tabs: readonly { id: T; name: string; to: Route | string; count?: ReactNode }[];
}

/** Parts of one page that have addresses of their own: links, so they open in a new tab as well. */
export function Tabs<T extends string>({ label, current, tabs }: TabsProps<T>) {
  return (
    <nav aria-label={label} className={style["tabs"]}>
      {tabs.map((tab) => (
        <Link
          key={tab.id}
          to={tab.to}
          className={classes(style["tab"], tab.id === current && style["current"])}
          aria-current={tab.id === current ? "page" : undefined}
        >
          {tab.name}
          {tab.count !== undefined && tab.count !== null && <span className={style["count"]}>{tab.count}</span>}
        </Link>
      ))}
    </nav>
  );
}

interface SegmentsProps<T extends string> {
  label: string;
  value: T;
  options: readonly { value: T; name: ReactNode; title?: string }[];
  onChange(value: T): void;
  className?: string | undefined;
}

/** A choice of one in a row of few. */
export function Segments<T extends string>({ label, value, options, onChange, className }: SegmentsProps<T>) {
  return (
    <div role="group" aria-label={label} className={classes(style["segments"], className)}>
      {options.map((option) => (
        <button
          key={option.value}
          type="button"
          className={style["segment"]}
          aria-pressed={option.value === value}
          aria-label={option.title}
          title={option.title}
          onClick={() => onChange(option.value)}
        >
          {option.name}
        </button>
      ))}
    </div>
  );
}
