import type { ReactNode } from "react";
import { useText } from "../../text";
import { classNames } from "../../ui";
import { escapePointer, type Draft } from "./draft";
import type { Field, GroupField } from "./fields";
import { useForm } from "./formContext";
import { ChoiceInput, MultiChoiceInput } from "./Choices";
import { ListInput } from "./ListInput";
import { labelOf } from "./schema";
import style from "./Form.module.css";

/** A field with its path and its draft. */
export interface FieldProps<F extends Field = Field> {
  field: F;
  draft: Draft | undefined;
  path: readonly (string | number)[];
  pointer: string;
}

/** A field with its label, input, hint and error. */
export function FieldView({ field, draft, path, pointer }: FieldProps) {
  switch (field.kind) {
    case "group":
      return <GroupView field={field} draft={draft} path={path} pointer={pointer} />;
    case "list":
      return (
        <Fieldset field={field} pointer={pointer}>
          <ListInput field={field} draft={draft} path={path} pointer={pointer} />
        </Fieldset>
      );
    case "multi-choice":
      return (
        <Fieldset field={field} pointer={pointer}>
          <MultiChoiceInput field={field} draft={draft} path={path} pointer={pointer} />
        </Fieldset>
      );
    case "choice":
      if (field.isExpanded) {
        return (
          <Fieldset field={field} pointer={pointer}>
            <ChoiceInput field={field} draft={draft} path={path} pointer={pointer} />
          </Fieldset>
        );
      }
      return (
        <Labelled field={field} pointer={pointer}>
          <ChoiceInput field={field} draft={draft} path={path} pointer={pointer} />
        </Labelled>
      );
    case "boolean":
      return <BooleanView field={field} draft={draft} path={path} pointer={pointer} />;
    case "constant":
      return (
        <div className={style["constant"]}>
          <span className="field-label">{field.title}</span>
          <span>{labelOf(field.value)}</span>
        </div>
      );
    default:
      return (
        <Labelled field={field} pointer={pointer}>
          <Input field={field} draft={draft} path={path} pointer={pointer} />
        </Labelled>
      );
  }
}

/** The fields of an object; the root has no fieldset. */
function GroupView({ field, draft, path, pointer }: FieldProps<GroupField>) {
  const drafts = (typeof draft === "object" && draft !== null && !Array.isArray(draft) ? draft : {}) as Readonly<Record<string, Draft>>;
  const fields = field.fields.map((each) => (
    <FieldView
      key={each.name}
      field={each}
      draft={drafts[each.name]}
      path={[...path, each.name]}
      pointer={`${pointer}/${escapePointer(each.name)}`}
    />
  ));
  if (path.length === 0 || field.title === "") return <div className={style["fields"]}>{fields}</div>;
  return (
    <Fieldset field={field} pointer={pointer} isBordered>
      <div className={style["fields"]}>{fields}</div>
    </Fieldset>
  );
}

interface FieldContainerProps {
  field: Field;
  pointer: string;
  children: ReactNode;
  isBordered?: boolean;
}

function Labelled({ field, pointer, children }: FieldContainerProps) {
  const form = useForm();
  return (
    <div className={classNames(isWide(field) && style["wide"])}>
      {field.title !== "" && (
        <label className="field-label" htmlFor={form.idOf(pointer)}>
          <Title field={field} />
        </label>
      )}
      {children}
      <HintAndError field={field} pointer={pointer} />
    </div>
  );
}

function Fieldset({ field, pointer, children, isBordered = false }: FieldContainerProps) {
  const form = useForm();
  const error = form.errorAt(pointer);
  return (
    <fieldset
      id={field.kind === "group" ? undefined : form.idOf(pointer)}
      tabIndex={-1}
      className={classNames(style["fieldset"], style["wide"], isBordered && style["bordered"])}
      aria-describedby={describedBy(form.idOf(pointer), field, error)}
    >
      {field.title !== "" && (
        <legend className="field-label">
          <Title field={field} />
        </legend>
      )}
      {children}
      <HintAndError field={field} pointer={pointer} />
    </fieldset>
  );
}

function Title({ field }: { field: Field }) {
  const { t } = useText();
  return (
    <>
      {field.title}
      {!field.required && field.default === undefined && field.kind !== "group" && (
        <span className={style["optional"]}> {t.run.form.optional}</span>
      )}
    </>
  );
}

function HintAndError({ field, pointer }: { field: Field; pointer: string }) {
  const form = useForm();
  const id = form.idOf(pointer);
  const error = form.errorAt(pointer);
  return (
    <>
      {field.description !== undefined && (
        <p className="field-hint" id={`${id}-hint`}>
          {field.description}
        </p>
      )}
      {error !== undefined && (
        <p className="field-error" id={`${id}-error`}>
          {error}
        </p>
      )}
    </>
  );
}

/** Returns the ids of the elements that describe an input. */
export function describedBy(id: string, field: Field, error: string | undefined): string | undefined {
  const parts = [field.description !== undefined && `${id}-hint`, error !== undefined && `${id}-error`].filter(Boolean);
  return parts.length === 0 ? undefined : parts.join(" ");
}

function Input({ field, draft, path, pointer }: FieldProps) {
  const { t } = useText();
  const form = useForm();
  const id = form.idOf(pointer);
  const error = form.errorAt(pointer);
  const shared = {
    id,
    className: classNames("field", field.kind === "json" && style["json"]),
    value: typeof draft === "string" ? draft : "",
    disabled: form.disabled,
    placeholder: field.placeholder,
    "aria-required": field.required,
    "aria-invalid": error !== undefined,
    "aria-describedby": describedBy(id, field, error),
    // A list item without a title is labelled by its index.
    ...(field.title === "" && { "aria-label": typeof path.at(-1) === "number" ? t.run.form.entry(Number(path.at(-1)) + 1) : t.run.form.answer }),
    onBlur: () => form.markTouched(pointer),
  };
  if (field.kind === "json" || (field.kind === "text" && field.isMultiline)) {
    return (
      <textarea
        {...shared}
        rows={field.kind === "json" ? 6 : 4}
        spellCheck={field.kind !== "json"}
        onChange={(event) => form.change(path, pointer, event.target.value)}
      />
    );
  }
  if (field.kind === "number") {
    return (
      <input
        {...shared}
        type="text"
        // An input of type number discards invalid text, and changes on scroll.
        inputMode={field.isInteger ? ((field.min ?? -1) >= 0 ? "numeric" : "text") : "decimal"}
        autoComplete="off"
        onChange={(event) => form.change(path, pointer, event.target.value)}
        onKeyDown={(event) => {
          const up = event.key === "ArrowUp";
          if ((!up && event.key !== "ArrowDown") || event.nativeEvent.isComposing) return;
          event.preventDefault();
          form.change(path, pointer, stepNumber(shared.value, up ? 1 : -1, field));
        }}
      />
    );
  }
  return (
    <input
      {...shared}
      type={field.kind === "text" ? field.input : "text"}
      autoComplete={field.kind === "text" && field.input === "email" ? "email" : "off"}
      onChange={(event) => form.change(path, pointer, event.target.value)}
    />
  );
}

/** Increments or decrements a number within its limits. */
export function stepNumber(text: string, direction: 1 | -1, field: { step: number | undefined; min: number | undefined; max: number | undefined }): string {
  const current = Number(text.trim());
  if (!Number.isFinite(current)) return text;
  const step = field.step ?? 1;
  const next = text.trim() === "" ? (field.min ?? 0) : current + direction * step;
  const clamped = Math.min(field.max ?? Infinity, Math.max(field.min ?? -Infinity, next));
  // Rounds floating-point errors such as 0.1 + 0.2.
  return String(Number(clamped.toPrecision(12)));
}

function BooleanView({ field, draft, path, pointer }: FieldProps) {
  const form = useForm();
  const id = form.idOf(pointer);
  const error = form.errorAt(pointer);
  return (
    <div className={style["wide"]}>
      <label className={style["checkbox"]}>
        <input
          id={id}
          type="checkbox"
          checked={draft === true}
          disabled={form.disabled}
          aria-invalid={error !== undefined}
          aria-describedby={describedBy(id, field, error)}
          onChange={(event) => form.change(path, pointer, event.target.checked)}
          onBlur={() => form.markTouched(pointer)}
        />
        <span>{field.title}</span>
      </label>
      <HintAndError field={field} pointer={pointer} />
    </div>
  );
}

/** Returns true if a field needs the full width. */
function isWide(field: Field): boolean {
  return field.kind === "json" || (field.kind === "text" && field.isMultiline);
}
