import { useRef } from "react";
import { useText } from "../../text";
import { Button, IconButton } from "../../ui";
import { emptyDraft, type Item } from "./draft";
import type { ListField } from "./fields";
import { FieldView, type FieldProps } from "./FieldView";
import { useForm } from "./formContext";
import style from "./Form.module.css";

/** A list whose items can be added, removed and moved. */
export function ListInput({ field, draft, path, pointer }: FieldProps<ListField>) {
  const { t } = useText();
  const form = useForm();
  const list = useRef<HTMLOListElement>(null);
  const items = (Array.isArray(draft) ? draft : []) as readonly Item[];
  const replaceItems = (next: readonly Item[]) => form.change(path, pointer, next);
  const add = () => {
    const key = items.reduce((max, item) => Math.max(max, item.key), -1) + 1;
    replaceItems([...items, { key, draft: emptyDraft(field.item) }]);
    // The new item is rendered by then.
    requestAnimationFrame(() => list.current?.lastElementChild?.querySelector<HTMLElement>("input, textarea, select")?.focus());
  };
  const move = (from: number, to: number) => {
    const next = [...items];
    next.splice(to, 0, ...next.splice(from, 1));
    replaceItems(next);
  };
  return (
    <>
      <ol ref={list} className={style["list"]}>
        {items.map((item, index) => (
          <li key={item.key} className={style["item"]}>
            <span className={style["index"]} aria-hidden="true">
              {index + 1}
            </span>
            <div className={style["itemBody"]}>
              <FieldView
                field={{ ...field.item, title: field.item.kind === "group" ? "" : field.item.title }}
                draft={item.draft}
                path={[...path, index]}
                pointer={`${pointer}/${index}`}
              />
            </div>
            <div className={style["itemActions"]}>
              <IconButton
                icon="arrowUp"
                size="small"
                label={t.run.form.up(index + 1)}
                disabled={form.disabled || index === 0}
                onClick={() => move(index, index - 1)}
              />
              <IconButton
                icon="arrowDown"
                size="small"
                label={t.run.form.down(index + 1)}
                disabled={form.disabled || index === items.length - 1}
                onClick={() => move(index, index + 1)}
              />
              <IconButton
                icon="cross"
                size="small"
                label={t.run.form.remove(index + 1)}
                disabled={form.disabled || items.length <= field.min}
                onClick={() => replaceItems(items.filter((each) => each !== item))}
              />
            </div>
          </li>
        ))}
      </ol>
      <Button size="small" icon="plus" disabled={form.disabled || items.length >= field.max} onClick={add}>
        {t.run.form.add}
      </Button>
    </>
  );
}
