import type { ReactNode } from "react";
import { Link, type Route } from "../router";
import { classNames } from "./classNames";
import style from "./Tabs.module.css";

interface TabsProps<T extends string> {
  label: string;
  current: T;
  tabs: readonly { id: T; name: string; to: Route | string; count?: ReactNode }[];
}

/** Tabs of a page as links with URLs. */
export function Tabs<T extends string>({ label, current, tabs }: TabsProps<T>) {
  return (
    <nav aria-label={label} className={style["tabs"]}>
      {tabs.map((tab) => (
        <Link
          key={tab.id}
          to={tab.to}
          className={classNames(style["tab"], tab.id === current && style["current"])}
          aria-current={tab.id === current ? "page" : undefined}
        >
          {tab.name}
          {tab.count !== undefined && tab.count !== null && <span className={style["count"]}>{tab.count}</span>}
        </Link>
      ))}
    </nav>
  );
}

interface SegmentedControlProps<T extends string> {
  label: string;
  value: T;
  options: readonly { value: T; name: ReactNode; title?: string }[];
  onChange(value: T): void;
  className?: string | undefined;
}

/** A segmented control. */
export function SegmentedControl<T extends string>({ label, value, options, onChange, className }: SegmentedControlProps<T>) {
  return (
    <div role="group" aria-label={label} className={classNames(style["segments"], className)}>
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
