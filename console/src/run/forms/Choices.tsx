import { useText } from "../../text";
import type { ChoiceField, MultiChoiceField } from "./fields";
import { describedBy, type FieldProps } from "./FieldView";
import { useForm } from "./formContext";
import style from "./Form.module.css";

/** Input of a choice: radio buttons, or a select for many options. */
export function ChoiceInput({ field, draft, path, pointer }: FieldProps<ChoiceField>) {
  const { t } = useText();
  const form = useForm();
  const id = form.idOf(pointer);
  const error = form.errorAt(pointer);
  const chosen = typeof draft === "number" ? draft : null;
  if (!field.isExpanded) {
    return (
      <select
        id={id}
        className="field"
        value={chosen === null ? "" : String(chosen)}
        disabled={form.disabled}
        aria-required={field.required}
        aria-invalid={error !== undefined}
        aria-describedby={describedBy(id, field, error)}
        onChange={(event) => form.change(path, pointer, event.target.value === "" ? null : Number(event.target.value))}
        onBlur={() => form.markTouched(pointer)}
      >
        {(chosen === null || !field.required) && <option value="">{t.run.form.choose}</option>}
        {field.options.map((option, index) => (
          <option key={index} value={index}>
            {option.label}
          </option>
        ))}
      </select>
    );
  }
  return (
    <div className={style["options"]} role="radiogroup" aria-label={field.title} onBlur={() => form.markTouched(pointer)}>
      {field.options.map((option, index) => (
        <label key={index} className={style["option"]}>
          <input
            type="radio"
            name={id}
            checked={chosen === index}
            disabled={form.disabled}
            onChange={() => form.change(path, pointer, index)}
            // An optional choice can be cleared.
            onClick={() => !field.required && chosen === index && form.change(path, pointer, null)}
          />
          <span>
            {option.label}
            {option.description !== undefined && <span className={style["optionHint"]}>{option.description}</span>}
          </span>
        </label>
      ))}
    </div>
  );
}

/** Checkboxes of a multiple choice. */
export function MultiChoiceInput({ field, draft, path, pointer }: FieldProps<MultiChoiceField>) {
  const form = useForm();
  const chosen = Array.isArray(draft) ? (draft as readonly number[]) : [];
  const toggle = (index: number, on: boolean) => {
    const next = on ? [...chosen, index].sort((one, other) => one - other) : chosen.filter((each) => each !== index);
    form.change(path, pointer, next);
  };
  return (
    <div className={style["options"]} onBlur={() => form.markTouched(pointer)}>
      {field.options.map((option, index) => (
        <label key={index} className={style["option"]}>
          <input
            type="checkbox"
            checked={chosen.includes(index)}
            disabled={form.disabled}
            onChange={(event) => toggle(index, event.target.checked)}
          />
          <span>{option.label}</span>
        </label>
      ))}
    </div>
  );
}
