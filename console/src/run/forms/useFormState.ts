import { useCallback, useEffect, useId, useMemo, useState } from "react";
import { useText } from "../../text";
import { checkOf, hasPlace, type Wrong } from "./check";
import { changed, emptyDraft, type Draft } from "./draft";
import type { Field } from "./fields";
import type { Form } from "./form-context";
import { keepDraft, keptDraft } from "./kept";
import { wordsOf } from "./words";

/** A form while it is filled in. */
export interface FormState {
  draft: Draft;
  /** What the draft means. */
  value: unknown;
  /** Whether a person has typed anything. */
  dirty: boolean;
  form: Form;
  /** What stands in the way of sending it, in words, with the field's element if it has one. */
  problems: readonly { pointer: string; id: string | undefined; title: string; words: string }[];
  /** Whether the problems may be summed up. */
  told: boolean;
  /** Asks whether it can be sent; from now on every problem is told. */
  ready(): boolean;
  /** Takes what the server says is wrong. */
  refuse(wrong: readonly Wrong[]): void;
}

/** Holds what is typed into a form: kept over a reload, checked as one types, told once a field was left. */
export function useFormState(field: Field, schema: unknown, key: string, disabled: boolean): FormState {
  const { t, format } = useText();
  const id = useId();
  const [kept] = useState(() => keptDraft(key));
  const [draft, setDraft] = useState<Draft>(() => kept ?? emptyDraft(field));
  const [dirty, setDirty] = useState(kept !== undefined);
  const [left, setLeft] = useState<ReadonlySet<string>>(new Set());
  const [tried, setTried] = useState(false);
  const [refused, setRefused] = useState<readonly Wrong[]>([]);
  const check = useMemo(() => checkOf(field, schema), [field, schema]);
  const { value, wrong } = useMemo(() => check(draft), [check, draft]);

  useEffect(() => {
    if (dirty) keepDraft(key, draft);
  }, [key, draft, dirty]);

  const idOf = useCallback((pointer: string) => `${id}${pointer.replaceAll(/\s/g, "_")}`, [id]);
  const change = useCallback((path: readonly (string | number)[], pointer: string, next: Draft) => {
    setDraft((before) => changed(before, path, next));
    setDirty(true);
    // What a server refused may fit now; it has not seen it yet.
    setRefused((before) => before.filter((each) => !touches(each.pointer, pointer)));
  }, []);
  const leave = useCallback((pointer: string) => setLeft((before) => (before.has(pointer) ? before : new Set(before).add(pointer))), []);

  const shown = useMemo(() => {
    const byPlace = new Map<string, Wrong>();
    for (const each of [...wrong.filter((each) => tried || left.has(each.pointer)), ...refused]) byPlace.set(each.pointer, each);
    return byPlace;
  }, [wrong, refused, tried, left]);

  const form = useMemo<Form>(
    () => ({
      errorAt: (pointer) => {
        const found = shown.get(pointer);
        return found === undefined ? undefined : wordsOf(found, t, format);
      },
      change,
      leave,
      idOf,
      disabled,
    }),
    [shown, t, format, change, leave, idOf, disabled],
  );

  const problems = [...shown.values()].map((each) => ({
    pointer: each.pointer,
    id: hasPlace(field, each.pointer) ? idOf(each.pointer) : undefined,
    title: titleAt(field, each.pointer) || t.run.form.answer,
    words: wordsOf(each, t, format),
  }));

  return {
    draft,
    value,
    dirty,
    form,
    problems,
    told: tried || refused.length > 0,
    ready: () => {
      setTried(true);
      return wrong.length === 0;
    },
    refuse: setRefused,
  };
}

/** Tells whether a change at one place may mend what is wrong at another. */
function touches(wrong: string, changed: string): boolean {
  return wrong === changed || changed.startsWith(`${wrong}/`) || wrong.startsWith(`${changed}/`);
}

/** Names a place the way the form does: the titles on the way to it. */
export function titleAt(root: Field, pointer: string): string {
  const titles: string[] = [];
  let field: Field | undefined = root;
  for (const part of pointer.split("/").slice(1)) {
    const name = part.replaceAll("~1", "/").replaceAll("~0", "~");
    if (field?.kind === "list") {
      field = field.item;
      titles.push(String(Number(name) + 1));
      continue;
    }
    field = field?.kind === "group" ? field.fields.find((each) => each.name === name) : undefined;
    titles.push(field?.title ?? name);
  }
  return titles.join(" › ");
}
