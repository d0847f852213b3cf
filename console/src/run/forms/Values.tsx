import { useText } from "../../text";
import { JsonTree } from "../../ui";
import type { Field } from "./fields";
import { isObject } from "./schema";
import style from "./Form.module.css";

interface ValuesProps {
  value: unknown;
  field?: Field | undefined;
  label: string;
  /** Depth that is expanded initially. */
  depth?: number;
}

/** Shows flat values as a definition list, nested ones as a tree. */
export function Values({ value, field, label, depth = 1 }: ValuesProps) {
  if (!isObject(value)) return <JsonTree value={value} depth={depth} label={label} />;
  const entries = Object.entries(value);
  return (
    <dl className={style["values"]} aria-label={label}>
      {entries.map(([name, each]) => {
        const own = field?.kind === "group" ? field.fields.find((candidate) => candidate.name === name) : undefined;
        return (
          <div key={name}>
            <dt>{own?.title ?? name}</dt>
            <dd>
              <Value value={each} field={own} label={own?.title ?? name} depth={depth} />
            </dd>
          </div>
        );
      })}
    </dl>
  );
}

function Value({ value, field, label, depth = 1 }: ValuesProps) {
  const { t, format } = useText();
  if (typeof value === "boolean") return t.run.form.yesNo(value);
  if (value === null || value === "") return t.run.form.nothing;
  if (typeof value === "string" || typeof value === "number") {
    const option = field?.kind === "choice" ? field.options.find((each) => each.value === value) : undefined;
    return option?.label ?? String(value);
  }
  if (Array.isArray(value) && value.every((each) => typeof each !== "object" || each === null)) {
    return value.length === 0 ? t.run.form.nothing : format.list(value.map(String));
  }
  if (isObject(value) && field?.kind === "group") return <Values value={value} field={field} label={label} depth={depth} />;
  return <JsonTree value={value} depth={depth} label={label} />;
}
