import { useCallback, useEffect, useId, useMemo, useState } from "react";
import { useText } from "../../text";
import { validatorFor, hasInput, type ValidationError } from "./validate";
import { replaceAt, emptyDraft, type Draft } from "./draft";
import type { Field } from "./fields";
import type { Form } from "./formContext";
import { storeDraft, loadDraft } from "./draftStorage";
import { errorText } from "./errorText";

/** A form while it is filled in. */
export interface FormState {
  draft: Draft;
  /** Value of the draft. */
  value: unknown;
  /** Whether a person has changed anything. */
  isDirty: boolean;
  form: Form;
  /** Error texts with the id of the field's element, if it has one. */
  problems: readonly { pointer: string; id: string | undefined; title: string; text: string }[];
  /** Whether the summary of problems is shown. */
  showsSummary: boolean;
  /** Returns true if the draft is valid; from now on all errors are shown. */
  validate(): boolean;
  /** Sets the errors of a server response. */
  setServerErrors(errors: readonly ValidationError[]): void;
}

/** State of a form: stored across reloads, validated on input, errors shown once a field was touched. */
export function useFormState(field: Field, schema: unknown, key: string, disabled: boolean): FormState {
  const { t, format } = useText();
  const id = useId();
  const [storedDraft] = useState(() => loadDraft(key));
  const [draft, setDraft] = useState<Draft>(() => storedDraft ?? emptyDraft(field));
  const [isDirty, setIsDirty] = useState(storedDraft !== undefined);
  const [touched, setTouched] = useState<ReadonlySet<string>>(new Set());
  const [isSubmitted, setSubmitted] = useState(false);
  const [rejected, setRejected] = useState<readonly ValidationError[]>([]);
  const validateDraft = useMemo(() => validatorFor(field, schema), [field, schema]);
  const { value, errors } = useMemo(() => validateDraft(draft), [validateDraft, draft]);

  useEffect(() => {
    if (isDirty) storeDraft(key, draft);
  }, [key, draft, isDirty]);

  const idOf = useCallback((pointer: string) => `${id}${pointer.replaceAll(/\s/g, "_")}`, [id]);
  const change = useCallback((path: readonly (string | number)[], pointer: string, next: Draft) => {
    setDraft((before) => replaceAt(before, path, next));
    setIsDirty(true);
    // The changed value may be valid: the server has not seen it yet.
    setRejected((before) => before.filter((each) => !overlaps(each.pointer, pointer)));
  }, []);
  const markTouched = useCallback((pointer: string) => setTouched((before) => (before.has(pointer) ? before : new Set(before).add(pointer))), []);

  const visibleErrors = useMemo(() => {
    const byPointer = new Map<string, ValidationError>();
    for (const each of [...errors.filter((each) => isSubmitted || touched.has(each.pointer)), ...rejected]) byPointer.set(each.pointer, each);
    return byPointer;
  }, [errors, rejected, isSubmitted, touched]);

  const form = useMemo<Form>(
    () => ({
      errorAt: (pointer) => {
        const error = visibleErrors.get(pointer);
        return error === undefined ? undefined : errorText(error, t, format);
      },
      change,
      markTouched,
      idOf,
      disabled,
    }),
    [visibleErrors, t, format, change, markTouched, idOf, disabled],
  );

  const problems = [...visibleErrors.values()].map((each) => ({
    pointer: each.pointer,
    id: hasInput(field, each.pointer) ? idOf(each.pointer) : undefined,
    title: titleAt(field, each.pointer) || t.run.form.answer,
    text: errorText(each, t, format),
  }));

  return {
    draft,
    value,
    isDirty,
    form,
    problems,
    showsSummary: isSubmitted || rejected.length > 0,
    validate: () => {
      setSubmitted(true);
      return errors.length === 0;
    },
    setServerErrors: setRejected,
  };
}

/** Returns true if a change at one pointer may fix an error at another. */
function overlaps(errorPointer: string, changedPointer: string): boolean {
  return errorPointer === changedPointer || changedPointer.startsWith(`${errorPointer}/`) || errorPointer.startsWith(`${changedPointer}/`);
}

/** Returns the titles on the path to a field. */
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
