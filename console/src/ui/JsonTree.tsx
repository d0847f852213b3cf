import { useState } from "react";
import { useText } from "../text";
import { classes } from "./classes";
import { Icon } from "./Icon";
import style from "./JsonTree.module.css";

interface JsonTreeProps {
  value: unknown;
  /** How many levels are open at first. */
  depth?: number;
  /** What the value is, for screen readers. */
  label?: string;
}

/** At most this many children are drawn at once; the rest on demand. */
const page = 100;
/** A longer text is cut, and shown whole on demand. */
const longText = 600;

/** Shows a JSON value that folds. What is folded is not drawn, so a big value costs what is seen of it. */
export function JsonTree({ value, depth = 1, label }: JsonTreeProps) {
  return (
    <div className={style["tree"]} role="group" aria-label={label} translate="no">
      <Node value={value} depth={depth} />
    </div>
  );
}

function Node({ name, value, depth }: { name?: string; value: unknown; depth: number }) {
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
  const [shown, setShown] = useState(page);
  const array = Array.isArray(value);
  if (entries.length === 0) {
    return (
      <div className={style["leaf"]}>
        <Name name={name} />
        <span className={style["empty"]}>{array ? "[]" : "{}"}</span>
      </div>
    );
  }
  const rest = entries.length - shown;
  return (
    <div>
      <button type="button" className={style["branch"]} aria-expanded={open} onClick={() => setOpen(!open)}>
        <Icon name="chevron" size={12} className={classes(style["chevron"], open && style["opened"])} />
        <Name name={name} />
        <span className={style["count"]}>{array ? t.json.items(entries.length) : t.json.fields(entries.length)}</span>
      </button>
      {open && (
        <div className={style["children"]}>
          {entries.slice(0, shown).map(([key, child]) => (
            <Node key={key} name={key} value={child} depth={depth - 1} />
          ))}
          {rest > 0 && (
            <button type="button" className={style["more"]} onClick={() => setShown(shown + page)}>
              {t.action.showMore(Math.min(rest, page))}
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
  const [whole, setWhole] = useState(false);
  if (typeof value === "string") {
    const cut = !whole && value.length > longText;
    return (
      <span className={style["string"]}>
        {cut ? `${value.slice(0, longText)}…` : value}
        {cut && (
          <button type="button" className={style["more"]} onClick={() => setWhole(true)}>
            {t.action.showAll} ({t.json.characters(format.number(value.length))})
          </button>
        )}
      </span>
    );
  }
  const kind = typeof value === "number" || typeof value === "bigint" ? "number" : "word";
  return <span className={style[kind]}>{String(value)}</span>;
}

function entriesOf(value: unknown): [string, unknown][] | null {
  if (typeof value !== "object" || value === null) return null;
  return Object.entries(value);
}
