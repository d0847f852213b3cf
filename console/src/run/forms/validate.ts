import { Validator, type OutputUnit, type SchemaDraft } from "@cfworker/json-schema";
import { escapePointer, valueOf, type Draft, type UnparsableInput } from "./draft";
import type { Field } from "./fields";
import { isObject, type Schema } from "./schema";

/** A validation error of a field, without its text. */
export interface ValidationError {
  /** JSON pointer into the values. */
  pointer: string;
  /** The violated JSON Schema keyword, or `json` or `number` for input that cannot be parsed. */
  keyword: string;
  /** Value of the keyword, for example the minimum or the format. */
  limit: unknown;
  /** Message of the server or the validator. */
  message: string;
}

/** The value of a draft and its errors. */
export interface ValidationResult {
  value: unknown;
  errors: readonly ValidationError[];
}

/** Validates a draft of a form. */
export type ValidateDraft = (draft: Draft) => ValidationResult;

/** Keywords that only report errors of their subschemas. */
const applicators = new Set(["properties", "items", "prefixItems", "patternProperties", "additionalItems", "$ref", "allOf", "if", "then", "else", "dependentSchemas"]);

/** Returns the validation of a form. A schema that the validator does not support is left to the server. */
export function validatorFor(field: Field, schema: unknown): ValidateDraft {
  const validator = validatorOf(schema);
  return (draft) => {
    const unparsable: UnparsableInput[] = [];
    const value = valueOf(field, draft, unparsable);
    const errors: ValidationError[] = unparsable.map(({ pointer, kind }) => ({ pointer, keyword: kind, limit: undefined, message: "" }));
    const known = new Set(errors.map(({ pointer }) => pointer));
    for (const each of violations(validator, value)) {
      const error = toValidationError(each, field);
      if (known.has(error.pointer)) continue;
      known.add(error.pointer);
      errors.push(error);
    }
    return { value, errors };
  };
}

function validatorOf(schema: unknown): Validator | undefined {
  if (!isObject(schema)) return undefined;
  try {
    return new Validator(withoutCostlyPatterns(schema) as object, draftVersion(schema), false);
  } catch {
    return undefined;
  }
}

/** Matches patterns with repeated groups or back references, which may cause catastrophic backtracking. */
const costlyPattern = /\)[*+{]|\\[1-9k]/;

/** Removes costly patterns: the schema comes from an agent, and the server validates them. */
function withoutCostlyPatterns(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withoutCostlyPatterns);
  if (!isObject(schema)) return schema;
  const entries = Object.entries(schema).filter(([name, value]) => {
    if (name === "pattern") return typeof value !== "string" || !costlyPattern.test(value);
    return name !== "patternProperties" || !isObject(value) || !Object.keys(value).some((pattern) => costlyPattern.test(pattern));
  });
  return Object.fromEntries(entries.map(([name, value]) => [name, withoutCostlyPatterns(value)]));
}

function draftVersion(schema: Schema): SchemaDraft {
  const uri = String(schema["$schema"] ?? "");
  if (uri.includes("2019-09")) return "2019-09";
  if (/draft-0[67]/.test(uri)) return "7";
  return uri.includes("draft-04") ? "4" : "2020-12";
}

function violations(validator: Validator | undefined, value: unknown): OutputUnit[] {
  if (validator === undefined) return [];
  let units: OutputUnit[];
  try {
    units = validator.validate(value === undefined ? null : value).errors;
  } catch {
    // An invalid pattern or reference: the server reports it.
    return [];
  }
  const leaves = units.filter((unit) => !applicators.has(unit.keyword));
  // A failed union is reported only if there is no error inside it.
  return leaves.filter((unit) => !["anyOf", "oneOf", "additionalProperties"].includes(unit.keyword) || leaves.length === 1);
}

function toValidationError(unit: OutputUnit, root: Field): ValidationError {
  const pointer = inputPointer(root, unit.instanceLocation.replace(/^#/, ""));
  if (unit.keyword === "required") {
    const name = /"(.*)"/s.exec(unit.error)?.[1] ?? "";
    return { pointer: inputPointer(root, `${pointer}/${escapePointer(name)}`), keyword: "required", limit: undefined, message: unit.error };
  }
  const field = fieldAt(root, pointer);
  return { pointer, keyword: unit.keyword, limit: field?.schema[unit.keyword], message: unit.error };
}

/** Converts the field errors of a server response. */
export function serverErrors(errors: readonly { pointer: string; message: string; keyword?: unknown }[], root: Field): ValidationError[] {
  return errors.map(({ pointer: serverPointer, message, keyword }) => {
    const pointer = inputPointer(root, serverPointer);
    const rule = typeof keyword === "string" ? keyword : "";
    return { pointer, keyword: rule, limit: fieldAt(root, pointer)?.schema[rule], message };
  });
}

/** Shortens a JSON pointer to the field with an input: values inside a JSON field or a choice have none. */
function inputPointer(root: Field, pointer: string): string {
  let field: Field | undefined = root;
  let pointerSoFar = "";
  for (const part of pointer.split("/").slice(1)) {
    if (field?.kind !== "group" && field?.kind !== "list") return field === undefined ? pointer : pointerSoFar;
    pointerSoFar += `/${part}`;
    field = fieldAt(root, pointerSoFar);
  }
  return pointerSoFar;
}

/** Returns the field at a JSON pointer. */
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

/** Returns true if the field has an input that can show the error. */
export function hasInput(root: Field, pointer: string): boolean {
  const field = fieldAt(root, pointer);
  return field !== undefined && (field !== root || root.kind === "json");
}
