import { isObject, numberOf, optionsOf, resolved, textOf, typeOf, type Option, type Schema } from "./schema";

interface Basis {
  /** The field's name in its object; empty for the whole and for the items of a list. */
  name: string;
  /** The field's title; empty where only its list has one. */
  title: string;
  description: string | undefined;
  required: boolean;
  /** Whether `null` says that it is left empty. */
  nullable: boolean;
  default: unknown;
  schema: Schema;
  placeholder: string | undefined;
}

/** A text on one line or several. */
export interface TextField extends Basis {
  kind: "text";
  input: "text" | "email" | "url" | "date" | "time" | "datetime-local" | "password";
  long: boolean;
}

/** A number. */
export interface NumberField extends Basis {
  kind: "number";
  whole: boolean;
  least: number | undefined;
  most: number | undefined;
  step: number | undefined;
}

/** One of several values. */
export interface ChoiceField extends Basis {
  kind: "choice";
  options: readonly Option[];
  /** Whether all choices are seen at once. */
  open: boolean;
}

/** Several of several values. */
export interface ManyField extends Basis {
  kind: "many";
  options: readonly Option[];
}

/** Yes or no. */
export interface BooleanField extends Basis {
  kind: "boolean";
}

/** A list that grows. */
export interface ListField extends Basis {
  kind: "list";
  item: Field;
  least: number;
  most: number;
}

/** Fields that belong together. */
export interface GroupField extends Basis {
  kind: "group";
  fields: readonly Field[];
}

/** A value that is what it is. */
export interface ConstantField extends Basis {
  kind: "constant";
  value: unknown;
}

/** What can only be written as JSON. */
export interface JsonField extends Basis {
  kind: "json";
}

/** One field of a form. */
export type Field =
  | TextField
  | NumberField
  | ChoiceField
  | ManyField
  | BooleanField
  | ListField
  | GroupField
  | ConstantField
  | JsonField;

/** More choices than this are a list to choose from. */
const mostOpen = 4;
/** A text that may be longer than this has several lines. */
const longText = 200;
/** Deeper than this nobody fills in a form. */
const deepest = 8;
/** More fields than this are nobody's form. */
const mostFields = 200;

interface Place {
  root: Schema;
  depth: number;
  left: { fields: number };
}

/** Makes the fields of a schema. What no field can show is a field for JSON. */
export function fieldsOf(schema: unknown, ui: unknown, hidden: readonly string[] = []): Field {
  const root = isObject(schema) ? schema : {};
  const field = fieldOf(schema, { name: "", required: true, ui }, { root, depth: 0, left: { fields: mostFields } });
  if (field.kind !== "group" || hidden.length === 0) return field;
  return { ...field, fields: field.fields.filter((each) => !hidden.includes(each.name)) };
}

interface Naming {
  name: string;
  required: boolean;
  ui: unknown;
}

function fieldOf(given: unknown, naming: Naming, place: Place): Field {
  const found = resolved(given, place.root);
  place.left.fields--;
  const ui = isObject(naming.ui) ? naming.ui : {};
  const said = found ?? {};
  const basis: Basis = {
    name: naming.name,
    title: textOf(ui["title"] ?? ui["label"]) ?? textOf(said["title"]) ?? naming.name,
    description: textOf(ui["help"] ?? ui["description"]) ?? textOf(said["description"]),
    required: naming.required,
    nullable: false,
    default: said["default"],
    schema: said,
    placeholder: textOf(ui["placeholder"]),
  };
  const json: JsonField = { ...basis, kind: "json" };
  if (found === undefined || place.depth > deepest || place.left.fields < 0) return json;
  // To agree is an act: nobody does so by a value that is filled in for them.
  if (typeof found["const"] === "boolean") return { ...basis, kind: "boolean" };
  if ("const" in found) return { ...basis, kind: "constant", value: found["const"] };
  const options = optionsOf(found);
  if (options !== undefined) return { ...basis, kind: "choice", options, open: options.length <= mostOpen };
  const inner = withoutNull(found);
  if (inner !== undefined) return { ...fieldOf(inner, naming, deeper(place)), nullable: true };
  if ("anyOf" in found || "oneOf" in found) return json;
  const { type, nullable } = typeOf(found);
  const shared = { ...basis, nullable };
  switch (type) {
    case "string":
      return textField(found, shared, ui);
    case "integer":
    case "number":
      return numberField(found, shared, type === "integer");
    case "boolean":
      return { ...shared, kind: "boolean" };
    case "array":
      return listField(found, shared, ui, place);
    case "object":
      return groupField(found, shared, ui, place);
    default:
      return { ...json, nullable };
  }
}

function deeper(place: Place): Place {
  return { ...place, depth: place.depth + 1 };
}

/** Gives what is left of a choice between something and `null`. */
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

function textField(schema: Schema, basis: Basis, ui: Schema): TextField {
  const input = inputs[textOf(schema["format"]) ?? ""] ?? "text";
  const widget = ui["widget"] ?? ui["ui:widget"];
  const roomy = (numberOf(schema["maxLength"]) ?? 0) > longText || schema["format"] === "textarea";
  const long = input === "text" && (widget === "textarea" || (widget === undefined && roomy));
  return { ...basis, kind: "text", input, long };
}

function numberField(schema: Schema, basis: Basis, whole: boolean): NumberField {
  const above = numberOf(schema["exclusiveMinimum"]);
  const below = numberOf(schema["exclusiveMaximum"]);
  return {
    ...basis,
    kind: "number",
    whole,
    least: numberOf(schema["minimum"]) ?? (whole && above !== undefined ? Math.floor(above) + 1 : above),
    most: numberOf(schema["maximum"]) ?? (whole && below !== undefined ? Math.ceil(below) - 1 : below),
    step: numberOf(schema["multipleOf"]) ?? (whole ? 1 : undefined),
  };
}

function listField(schema: Schema, basis: Basis, ui: Schema, place: Place): Field {
  // A tuple has fields that no list of equal ones can show.
  if ("prefixItems" in schema || Array.isArray(schema["items"])) return { ...basis, kind: "json" };
  const items = resolved(schema["items"] ?? true, place.root);
  const options = items === undefined ? undefined : optionsOf(items);
  if (options !== undefined) return { ...basis, kind: "many", options };
  const item = fieldOf(items, { name: "", required: true, ui: ui["items"] }, deeper(place));
  return {
    ...basis,
    kind: "list",
    item,
    least: numberOf(schema["minItems"]) ?? 0,
    most: numberOf(schema["maxItems"]) ?? Infinity,
  };
}

function groupField(schema: Schema, basis: Basis, ui: Schema, place: Place): Field {
  const { properties, required } = schema;
  if (!isObject(properties) || Object.keys(properties).length === 0) return { ...basis, kind: "json" };
  const needed = new Set(Array.isArray(required) ? required : []);
  // Texts of a field stand under its name, or under `fields`.
  const inner = isObject(ui["fields"]) ? ui["fields"] : ui;
  const fields = Object.entries(properties).map(([name, property]) =>
    fieldOf(property, { name, required: needed.has(name), ui: inner[name] }, deeper(place)),
  );
  return { ...basis, kind: "group", fields };
}
