import { Validator, type OutputUnit, type SchemaDraft } from "@cfworker/json-schema";
import { escaped, valueOf, type Draft, type Unreadable } from "./draft";
import type { Field } from "./fields";
import { isObject, type Schema } from "./schema";

/** What is wrong with a field, before it has words. */
export interface Wrong {
  /** Where, as a JSON pointer into the values. */
  pointer: string;
  /** The rule that is broken: a keyword of JSON Schema, or `json` or `number` for what cannot be read. */
  keyword: string;
  /** What the rule asks for: the least number, the format's name. */
  limit: unknown;
  /** What a server or a library says of it. */
  message: string;
}

/** What a draft means, and what is wrong with it. */
export interface Checked {
  value: unknown;
  wrong: readonly Wrong[];
}

/** Checks drafts of one form. */
export type Check = (draft: Draft) => Checked;

/** Rules that only say that something inside them is broken. */
const around = new Set(["properties", "items", "prefixItems", "patternProperties", "additionalItems", "$ref", "allOf", "if", "then", "else", "dependentSchemas"]);

/** Makes what checks a form as a person types. A schema that cannot be used is left to the server. */
export function checkOf(field: Field, schema: unknown): Check {
  const validator = validatorOf(schema);
  return (draft) => {
    const unreadable: Unreadable[] = [];
    const value = valueOf(field, draft, unreadable);
    const wrong: Wrong[] = unreadable.map(({ pointer, what }) => ({ pointer, keyword: what, limit: undefined, message: "" }));
    const known = new Set(wrong.map(({ pointer }) => pointer));
    for (const each of broken(validator, value)) {
      const told = wrongOf(each, field);
      if (known.has(told.pointer)) continue;
      known.add(told.pointer);
      wrong.push(told);
    }
    return { value, wrong };
  };
}

function validatorOf(schema: unknown): Validator | undefined {
  if (!isObject(schema)) return undefined;
  try {
    return new Validator(withoutCostly(schema) as object, draftOf(schema), false);
  } catch {
    return undefined;
  }
}

/** A repeated group, or a reference back: what may take a browser for ever with the wrong text. */
const costly = /\)[*+{]|\\[1-9k]/;

/** Leaves out patterns that a browser may not get to the end of: a schema comes from an agent, and the server checks them. */
function withoutCostly(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withoutCostly);
  if (!isObject(schema)) return schema;
  const kept = Object.entries(schema).filter(([name, value]) => {
    if (name === "pattern") return typeof value !== "string" || !costly.test(value);
    return name !== "patternProperties" || !isObject(value) || !Object.keys(value).some((pattern) => costly.test(pattern));
  });
  return Object.fromEntries(kept.map(([name, value]) => [name, withoutCostly(value)]));
}

function draftOf(schema: Schema): SchemaDraft {
  const named = String(schema["$schema"] ?? "");
  if (named.includes("2019-09")) return "2019-09";
  if (/draft-0[67]/.test(named)) return "7";
  return named.includes("draft-04") ? "4" : "2020-12";
}

function broken(validator: Validator | undefined, value: unknown): OutputUnit[] {
  if (validator === undefined) return [];
  let units: OutputUnit[];
  try {
    units = validator.validate(value === undefined ? null : value).errors;
  } catch {
    // A pattern that is no regular expression, a reference that leads nowhere: the server says so.
    return [];
  }
  const leaves = units.filter((unit) => !around.has(unit.keyword));
  // A choice of shapes is only worth telling where nothing inside it is.
  return leaves.filter((unit) => !["anyOf", "oneOf", "additionalProperties"].includes(unit.keyword) || leaves.length === 1);
}

function wrongOf(unit: OutputUnit, root: Field): Wrong {
  const pointer = shownAt(root, unit.instanceLocation.replace(/^#/, ""));
  if (unit.keyword === "required") {
    const name = /"(.*)"/s.exec(unit.error)?.[1] ?? "";
    return { pointer: shownAt(root, `${pointer}/${escaped(name)}`), keyword: "required", limit: undefined, message: unit.error };
  }
  const field = fieldAt(root, pointer);
  return { pointer, keyword: unit.keyword, limit: field?.schema[unit.keyword], message: unit.error };
}

/** Reads what a server says of an answer that does not fit. */
export function toldByServer(errors: readonly { pointer: string; message: string; keyword?: unknown }[], root: Field): Wrong[] {
  return errors.map(({ pointer: told, message, keyword }) => {
    const pointer = shownAt(root, told);
    const rule = typeof keyword === "string" ? keyword : "";
    return { pointer, keyword: rule, limit: fieldAt(root, pointer)?.schema[rule], message };
  });
}

/** Shortens a JSON pointer to the field that shows what is there: the parts of JSON, or of a choice, have no field. */
function shownAt(root: Field, pointer: string): string {
  let field: Field | undefined = root;
  let shown = "";
  for (const part of pointer.split("/").slice(1)) {
    if (field?.kind !== "group" && field?.kind !== "list") return field === undefined ? pointer : shown;
    shown += `/${part}`;
    field = fieldAt(root, shown);
  }
  return shown;
}

/** Finds the field at a JSON pointer. */
export function fieldAt(root: Field, pointer: string): Field | undefined {
  let field: Field | undefined = root;
  for (const part of pointer.split("/").slice(1)) {
    const name = part.replaceAll("~1", "/").replaceAll("~0", "~");
    if (field?.kind === "group") field = field.fields.find((each) => each.name === name);
    else if (field?.kind === "list") field = field.item;
    else return field;
  }
  return field;
}

/** Tells whether there is a place on the form to say it. */
export function hasPlace(root: Field, pointer: string): boolean {
  const field = fieldAt(root, pointer);
  return field !== undefined && (field !== root || root.kind === "json");
}
