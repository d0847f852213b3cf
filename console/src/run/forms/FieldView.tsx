import type { ReactNode } from "react";
import { useText } from "../../text";
import { classes } from "../../ui";
import { escaped, type Draft } from "./draft";
import type { Field, GroupField } from "./fields";
import { useForm } from "./form-context";
import { ChoiceInput, ManyInput } from "./Choices";
import { ListInput } from "./ListInput";
import { labelOf } from "./schema";
import style from "./Form.module.css";

/** Where a field is, and what was typed into it. */
export interface FieldProps<F extends Field = Field> {
  field: F;
  draft: Draft | undefined;
  path: readonly (string | number)[];
  pointer: string;
}

/** Shows one field: its label, its input, its help, and what is wrong with it. */
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
    case "many":
      return (
        <Fieldset field={field} pointer={pointer}>
          <ManyInput field={field} draft={draft} path={path} pointer={pointer} />
        </Fieldset>
      );
    case "choice":
      if (field.open) {
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

/** Shows the fields of an object; the outermost one has no frame of its own. */
function GroupView({ field, draft, path, pointer }: FieldProps<GroupField>) {
  const drafts = (typeof draft === "object" && draft !== null && !Array.isArray(draft) ? draft : {}) as Readonly<Record<string, Draft>>;
  const fields = field.fields.map((each) => (
    <FieldView
      key={each.name}
      field={each}
      draft={drafts[each.name]}
      path={[...path, each.name]}
      pointer={`${pointer}/${escaped(each.name)}`}
    />
  ));
  if (path.length === 0 || field.title === "") return <div className={style["fields"]}>{fields}</div>;
  return (
    <Fieldset field={field} pointer={pointer} framed>
      <div className={style["fields"]}>{fields}</div>
    </Fieldset>
  );
}

interface FrameProps {
  field: Field;
  pointer: string;
  children: ReactNode;
  framed?: boolean;
}

function Labelled({ field, pointer, children }: FrameProps) {
  const form = useForm();
  return (
    <div className={classes(wide(field) && style["wide"])}>
      {field.title !== "" && (
        <label className="field-label" htmlFor={form.idOf(pointer)}>
          <Title field={field} />
        </label>
      )}
      {children}
      <Below field={field} pointer={pointer} />
    </div>
  );
}

function Fieldset({ field, pointer, children, framed = false }: FrameProps) {
  const form = useForm();
  const error = form.errorAt(pointer);
  return (
    <fieldset
      id={field.kind === "group" ? undefined : form.idOf(pointer)}
      tabIndex={-1}
      className={classes(style["set"], style["wide"], framed && style["framed"])}
      aria-describedby={describedBy(form.idOf(pointer), field, error)}
    >
      {field.title !== "" && (
        <legend className="field-label">
          <Title field={field} />
        </legend>
      )}
      {children}
      <Below field={field} pointer={pointer} />
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

function Below({ field, pointer }: { field: Field; pointer: string }) {
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

/** Names the texts that describe an input. */
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
    className: classes("field", field.kind === "json" && style["json"]),
    value: typeof draft === "string" ? draft : "",
    disabled: form.disabled,
    placeholder: field.placeholder,
    "aria-required": field.required,
    "aria-invalid": error !== undefined,
    "aria-describedby": describedBy(id, field, error),
    // An entry of a list that has no name is called by its place.
    ...(field.title === "" && { "aria-label": typeof path.at(-1) === "number" ? t.run.form.entry(Number(path.at(-1)) + 1) : t.run.form.answer }),
    onBlur: () => form.leave(pointer),
  };
  if (field.kind === "json" || (field.kind === "text" && field.long)) {
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
        // A field of type number swallows what it cannot read, and turns at the wheel.
        inputMode={field.whole ? ((field.least ?? -1) >= 0 ? "numeric" : "text") : "decimal"}
        autoComplete="off"
        onChange={(event) => form.change(path, pointer, event.target.value)}
        onKeyDown={(event) => {
          const up = event.key === "ArrowUp";
          if ((!up && event.key !== "ArrowDown") || event.nativeEvent.isComposing) return;
          event.preventDefault();
          form.change(path, pointer, stepped(shared.value, up ? 1 : -1, field));
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

/** Counts a number up or down within its limits. */
export function stepped(text: string, direction: 1 | -1, field: { step: number | undefined; least: number | undefined; most: number | undefined }): string {
  const now = Number(text.trim());
  if (!Number.isFinite(now)) return text;
  const step = field.step ?? 1;
  const next = text.trim() === "" ? (field.least ?? 0) : now + direction * step;
  const within = Math.min(field.most ?? Infinity, Math.max(field.least ?? -Infinity, next));
  // 0.1 + 0.2 is no number that a person typed.
  return String(Number(within.toPrecision(12)));
}

function BooleanView({ field, draft, path, pointer }: FieldProps) {
  const form = useForm();
  const id = form.idOf(pointer);
  const error = form.errorAt(pointer);
  return (
    <div className={style["wide"]}>
      <label className={style["tick"]}>
        <input
          id={id}
          type="checkbox"
          checked={draft === true}
          disabled={form.disabled}
          aria-invalid={error !== undefined}
          aria-describedby={describedBy(id, field, error)}
          onChange={(event) => form.change(path, pointer, event.target.checked)}
          onBlur={() => form.leave(pointer)}
        />
        <span>{field.title}</span>
      </label>
      <Below field={field} pointer={pointer} />
    </div>
  );
}

/** Tells whether a field needs the whole width. */
function wide(field: Field): boolean {
  return field.kind === "json" || (field.kind === "text" && field.long);
}
