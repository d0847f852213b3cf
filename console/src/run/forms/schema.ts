/** A JSON Schema that is an object. */
export type Schema = Readonly<Record<string, unknown>>;

/** A choice of an enumeration. */
export interface Option {
  value: unknown;
  label: string;
  description?: string | undefined;
}

/** Tells whether something is a JSON object. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Gives a text, if it is one. */
export function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** Gives a number, if it is one. */
export function numberOf(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
}

/** References that lead to references end somewhere, or are nobody's form. */
const mostReferences = 20;

/**
 * Follows references inside the same schema, and takes the parts of `allOf` together. Gives nothing where a reference
 * leads nowhere.
 */
export function resolved(schema: unknown, root: Schema, followed = 0): Schema | undefined {
  if (schema === true) return {};
  if (!isObject(schema)) return undefined;
  if (followed > mostReferences) return undefined;
  const { $ref, allOf, ...own } = schema;
  let whole: Schema = {};
  const parts = [...(typeof $ref === "string" ? [at(root, $ref)] : []), ...(Array.isArray(allOf) ? (allOf as unknown[]) : [])];
  for (const part of parts) {
    const more = resolved(part, root, followed + 1);
    if (more === undefined) return undefined;
    whole = joined(whole, more);
  }
  return joined(whole, own);
}

/** Takes two schemas together; where both say something, the second one does. */
function joined(first: Schema, second: Schema): Schema {
  const both: Record<string, unknown> = { ...first, ...second };
  if (isObject(first["properties"]) && isObject(second["properties"])) {
    both["properties"] = { ...first["properties"], ...second["properties"] };
  }
  if (Array.isArray(first["required"]) && Array.isArray(second["required"])) {
    both["required"] = [...new Set([...first["required"], ...second["required"]])];
  }
  return both;
}

function at(root: Schema, reference: string): unknown {
  if (reference === "#") return root;
  if (!reference.startsWith("#/")) return undefined;
  let found: unknown = root;
  for (const part of reference.slice(2).split("/")) {
    const name = unescaped(part);
    found = isObject(found) || Array.isArray(found) ? (found as Record<string, unknown>)[name] : undefined;
  }
  return found;
}

function unescaped(part: string): string {
  try {
    return decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~");
  } catch {
    return part;
  }
}

/** Gives the choices of an enumeration: `enum`, or `oneOf` of titled constants. */
export function optionsOf(schema: Schema): Option[] | undefined {
  const { enum: values, enumNames } = schema;
  if (Array.isArray(values) && values.length > 0) {
    const names = Array.isArray(enumNames) ? enumNames : [];
    return values.map((value, index) => ({ value, label: textOf(names[index]) ?? labelOf(value) }));
  }
  const branches = schema["oneOf"] ?? schema["anyOf"];
  if (!Array.isArray(branches) || branches.length === 0) return undefined;
  const options: Option[] = [];
  for (const branch of branches) {
    if (!isObject(branch) || !("const" in branch)) return undefined;
    options.push({
      value: branch["const"],
      label: textOf(branch["title"]) ?? labelOf(branch["const"]),
      description: textOf(branch["description"]),
    });
  }
  return options;
}

/** Shows a value as a word. */
export function labelOf(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}

/** Tells the type of a schema; `null` beside another type only says that it may be left empty. */
export function typeOf(schema: Schema): { type: string | undefined; nullable: boolean } {
  const { type } = schema;
  if (typeof type === "string") return { type, nullable: false };
  if (Array.isArray(type)) {
    const others = type.filter((each) => each !== "null");
    return { type: others.length === 1 ? textOf(others[0]) : undefined, nullable: others.length < type.length };
  }
  if (isObject(schema["properties"])) return { type: "object", nullable: false };
  return { type: undefined, nullable: false };
}
