import { isObject, numberOf, optionsOf, resolveSchema, stringOf, typeOf, type Option, type Schema } from "./schema";

interface FieldBase {
  /** Name of the property; empty for the root and for list items. */
  name: string;
  /** Title of the field; empty for list items without one. */
  title: string;
  description: string | undefined;
  required: boolean;
  /** Whether an empty field is sent as `null`. */
  nullable: boolean;
  default: unknown;
  schema: Schema;
  placeholder: string | undefined;
}

/** A single-line or multi-line text. */
export interface TextField extends FieldBase {
  kind: "text";
  input: "text" | "email" | "url" | "date" | "time" | "datetime-local" | "password";
  isMultiline: boolean;
}

/** A number. */
export interface NumberField extends FieldBase {
  kind: "number";
  isInteger: boolean;
  min: number | undefined;
  max: number | undefined;
  step: number | undefined;
}

/** A choice of one value. */
export interface ChoiceField extends FieldBase {
  kind: "choice";
  options: readonly Option[];
  /** Whether the options are radio buttons instead of a select. */
  isExpanded: boolean;
}

/** A choice of several values. */
export interface MultiChoiceField extends FieldBase {
  kind: "multi-choice";
  options: readonly Option[];
}

/** A checkbox. */
export interface BooleanField extends FieldBase {
  kind: "boolean";
}

/** A list of fields of variable length. */
export interface ListField extends FieldBase {
  kind: "list";
  item: Field;
  min: number;
  max: number;
}

/** The fields of an object. */
export interface GroupField extends FieldBase {
  kind: "group";
  fields: readonly Field[];
}

/** A constant value. */
export interface ConstantField extends FieldBase {
  kind: "constant";
  value: unknown;
}

/** A value that is entered as JSON. */
export interface JsonField extends FieldBase {
  kind: "json";
}

/** One field of a form. */
export type Field =
  | TextField
  | NumberField
  | ChoiceField
  | MultiChoiceField
  | BooleanField
  | ListField
  | GroupField
  | ConstantField
  | JsonField;

/** Maximum number of options shown as radio buttons. */
const maxRadioOptions = 4;
/** Texts with a larger `maxLength` are multi-line. */
const multilineAbove = 200;
/** Maximum nesting depth of fields. */
const maxDepth = 8;
/** Maximum number of fields. */
const maxFields = 200;

interface SchemaPosition {
  root: Schema;
  depth: number;
  budget: { fields: number };
}

/** Converts a JSON Schema to fields. A schema without a matching field becomes a JSON field. */
export function fieldsOf(schema: unknown, ui: unknown, hidden: readonly string[] = []): Field {
  const root = isObject(schema) ? schema : {};
  const field = fieldOf(schema, { name: "", required: true, ui }, { root, depth: 0, budget: { fields: maxFields } });
  if (field.kind !== "group" || hidden.length === 0) return field;
  return { ...field, fields: field.fields.filter((each) => !hidden.includes(each.name)) };
}

interface FieldContext {
  name: string;
  required: boolean;
  ui: unknown;
}

function fieldOf(definition: unknown, context: FieldContext, position: SchemaPosition): Field {
  const resolved = resolveSchema(definition, position.root);
  position.budget.fields--;
  const ui = isObject(context.ui) ? context.ui : {};
  const schema = resolved ?? {};
  const base: FieldBase = {
    name: context.name,
    title: stringOf(ui["title"] ?? ui["label"]) ?? stringOf(schema["title"]) ?? context.name,
    description: stringOf(ui["help"] ?? ui["description"]) ?? stringOf(schema["description"]),
    required: context.required,
    nullable: false,
    default: schema["default"],
    schema,
    placeholder: stringOf(ui["placeholder"]),
  };
  const json: JsonField = { ...base, kind: "json" };
  if (resolved === undefined || position.depth > maxDepth || position.budget.fields < 0) return json;
  // Consent must be explicit: a boolean constant is not filled in.
  if (typeof resolved["const"] === "boolean") return { ...base, kind: "boolean" };
  if ("const" in resolved) return { ...base, kind: "constant", value: resolved["const"] };
  const options = optionsOf(resolved);
  if (options !== undefined) return { ...base, kind: "choice", options, isExpanded: options.length <= maxRadioOptions };
  const nonNull = withoutNull(resolved);
  if (nonNull !== undefined) return { ...fieldOf(nonNull, context, nested(position)), nullable: true };
  if ("anyOf" in resolved || "oneOf" in resolved) return json;
  const { type, nullable } = typeOf(resolved);
  const shared = { ...base, nullable };
  switch (type) {
    case "string":
      return textField(resolved, shared, ui);
    case "integer":
    case "number":
      return numberField(resolved, shared, type === "integer");
    case "boolean":
      return { ...shared, kind: "boolean" };
    case "array":
      return listField(resolved, shared, ui, position);
    case "object":
      return groupField(resolved, shared, ui, position);
    default:
      return { ...json, nullable };
  }
}

function nested(position: SchemaPosition): SchemaPosition {
  return { ...position, depth: position.depth + 1 };
}

/** Returns the other alternative of a union with `null`. */
function withoutNull(schema: Schema): unknown {
  const branches = schema["anyOf"] ?? schema["oneOf"];
  if (!Array.isArray(branches) || branches.length !== 2) return undefined;
  const others = branches.filter((branch) => !(isObject(branch) && branch["type"] === "null"));
  const [other] = others;
  if (others.length !== 1 || !isObject(other)) return undefined;
  const { anyOf: _, oneOf: __, ...around } = schema;
  return { ...other, ...around };
}

const inputs: Readonly<Record<string, TextField["input"]>> = {
  email: "email",
  "idn-email": "email",
  uri: "url",
  url: "url",
  iri: "url",
  date: "date",
  time: "time",
  "date-time": "datetime-local",
  password: "password",
};

function textField(schema: Schema, base: FieldBase, ui: Schema): TextField {
  const input = inputs[stringOf(schema["format"]) ?? ""] ?? "text";
  const widget = ui["widget"] ?? ui["ui:widget"];
  const isLong = (numberOf(schema["maxLength"]) ?? 0) > multilineAbove || schema["format"] === "textarea";
  const isMultiline = input === "text" && (widget === "textarea" || (widget === undefined && isLong));
  return { ...base, kind: "text", input, isMultiline };
}

function numberField(schema: Schema, base: FieldBase, isInteger: boolean): NumberField {
  const exclusiveMin = numberOf(schema["exclusiveMinimum"]);
  const exclusiveMax = numberOf(schema["exclusiveMaximum"]);
  return {
    ...base,
    kind: "number",
    isInteger,
    min: numberOf(schema["minimum"]) ?? (isInteger && exclusiveMin !== undefined ? Math.floor(exclusiveMin) + 1 : exclusiveMin),
    max: numberOf(schema["maximum"]) ?? (isInteger && exclusiveMax !== undefined ? Math.ceil(exclusiveMax) - 1 : exclusiveMax),
    step: numberOf(schema["multipleOf"]) ?? (isInteger ? 1 : undefined),
  };
}

function listField(schema: Schema, base: FieldBase, ui: Schema, position: SchemaPosition): Field {
  // A tuple cannot be shown as a list of equal items.
  if ("prefixItems" in schema || Array.isArray(schema["items"])) return { ...base, kind: "json" };
  const items = resolveSchema(schema["items"] ?? true, position.root);
  const options = items === undefined ? undefined : optionsOf(items);
  if (options !== undefined) return { ...base, kind: "multi-choice", options };
  const item = fieldOf(items, { name: "", required: true, ui: ui["items"] }, nested(position));
  return {
    ...base,
    kind: "list",
    item,
    min: numberOf(schema["minItems"]) ?? 0,
    max: numberOf(schema["maxItems"]) ?? Infinity,
  };
}

function groupField(schema: Schema, base: FieldBase, ui: Schema, position: SchemaPosition): Field {
  const { properties, required } = schema;
  if (!isObject(properties) || Object.keys(properties).length === 0) return { ...base, kind: "json" };
  const requiredNames = new Set(Array.isArray(required) ? required : []);
  // UI texts of a field are under its name, or under `fields`.
  const fieldUi = isObject(ui["fields"]) ? ui["fields"] : ui;
  const fields = Object.entries(properties).map(([name, property]) =>
    fieldOf(property, { name, required: requiredNames.has(name), ui: fieldUi[name] }, nested(position)),
  );
  return { ...base, kind: "group", fields };
}
