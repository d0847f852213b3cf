import { useState } from "react";
import { useText } from "../text";
import { classNames } from "./classNames";
import { Icon } from "./Icon";
import style from "./JsonTree.module.css";

interface JsonTreeProps {
  value: unknown;
  /** Depth that is expanded initially. */
  depth?: number;
  /** Label for screen readers. */
  label?: string;
}

/** Number of children that are rendered at once; more on demand. */
const pageSize = 100;
/** Longer texts are truncated, and shown completely on demand. */
const maxTextLength = 600;

/** A collapsible JSON value. Collapsed values are not rendered. */
export function JsonTree({ value, depth = 1, label }: JsonTreeProps) {
  return (
    <div className={style["tree"]} role="group" aria-label={label} translate="no">
      <TreeNode value={value} depth={depth} />
    </div>
  );
}

function TreeNode({ name, value, depth }: { name?: string; value: unknown; depth: number }) {
  const entries = entriesOf(value);
  if (entries === null) {
    return (
      <div className={style["leaf"]}>
        <Name name={name} />
        <Scalar value={value} />
      </div>
    );
  }
  return <Branch name={name} value={value} entries={entries} depth={depth} />;
}

interface BranchProps {
  name: string | undefined;
  value: unknown;
  entries: readonly (readonly [string, unknown])[];
  depth: number;
}

function Branch({ name, value, entries, depth }: BranchProps) {
  const { t } = useText();
  const [open, setOpen] = useState(depth > 0);
  const [visibleCount, setVisibleCount] = useState(pageSize);
  const isArray = Array.isArray(value);
  if (entries.length === 0) {
    return (
      <div className={style["leaf"]}>
        <Name name={name} />
        <span className={style["empty"]}>{isArray ? "[]" : "{}"}</span>
      </div>
    );
  }
  const remaining = entries.length - visibleCount;
  return (
    <div>
      <button type="button" className={style["branch"]} aria-expanded={open} onClick={() => setOpen(!open)}>
        <Icon name="chevron" size={12} className={classNames(style["chevron"], open && style["opened"])} />
        <Name name={name} />
        <span className={style["count"]}>{isArray ? t.json.items(entries.length) : t.json.fields(entries.length)}</span>
      </button>
      {open && (
        <div className={style["children"]}>
          {entries.slice(0, visibleCount).map(([key, child]) => (
            <TreeNode key={key} name={key} value={child} depth={depth - 1} />
          ))}
          {remaining > 0 && (
            <button type="button" className={style["more"]} onClick={() => setVisibleCount(visibleCount + pageSize)}>
              {t.action.showMore(Math.min(remaining, pageSize))}
            </button>
          )}
        </div>
      )}
    </div>
  );
}

function Name({ name }: { name: string | undefined }) {
  return name === undefined ? null : <span className={style["name"]}>{name}</span>;
}

function Scalar({ value }: { value: unknown }) {
  const { t, format } = useText();
  const [isExpanded, setExpanded] = useState(false);
  if (typeof value === "string") {
    const isTruncated = !isExpanded && value.length > maxTextLength;
    return (
      <span className={style["string"]}>
        {isTruncated ? `${value.slice(0, maxTextLength)}…` : value}
        {isTruncated && (
          <button type="button" className={style["more"]} onClick={() => setExpanded(true)}>
            {t.action.showAll} ({t.json.characters(format.number(value.length))})
          </button>
        )}
      </span>
    );
  }
  const kind = typeof value === "number" || typeof value === "bigint" ? "number" : "keyword";
  return <span className={style[kind]}>{String(value)}</span>;
}

function entriesOf(value: unknown): [string, unknown][] | null {
  if (typeof value !== "object" || value === null) return null;
  return Object.entries(value);
}
