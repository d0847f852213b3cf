/** A JSON Schema that is an object. */
export type Schema = Readonly<Record<string, unknown>>;

/** An option of an enumeration. */
export interface Option {
  value: unknown;
  label: string;
  description?: string | undefined;
}

/** Returns true if the value is a JSON object. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Returns the value if it is a string that is not empty. */
export function stringOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** Returns the value if it is a finite number. */
export function numberOf(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
}

/** Maximum number of nested references. */
const maxReferences = 20;

/**
 * Resolves references within the schema and merges `allOf`. Returns undefined if a reference cannot be resolved.
 */
export function resolveSchema(schema: unknown, root: Schema, references = 0): Schema | undefined {
  if (schema === true) return {};
  if (!isObject(schema)) return undefined;
  if (references > maxReferences) return undefined;
  const { $ref, allOf, ...own } = schema;
  let merged: Schema = {};
  const parts = [...(typeof $ref === "string" ? [resolveReference(root, $ref)] : []), ...(Array.isArray(allOf) ? (allOf as unknown[]) : [])];
  for (const part of parts) {
    const subschema = resolveSchema(part, root, references + 1);
    if (subschema === undefined) return undefined;
    merged = mergeSchemas(merged, subschema);
  }
  return mergeSchemas(merged, own);
}

/** Merges two schemas; the second one takes precedence. */
function mergeSchemas(first: Schema, second: Schema): Schema {
  const merged: Record<string, unknown> = { ...first, ...second };
  if (isObject(first["properties"]) && isObject(second["properties"])) {
    merged["properties"] = { ...first["properties"], ...second["properties"] };
  }
  if (Array.isArray(first["required"]) && Array.isArray(second["required"])) {
    merged["required"] = [...new Set([...first["required"], ...second["required"]])];
  }
  return merged;
}

function resolveReference(root: Schema, reference: string): unknown {
  if (reference === "#") return root;
  if (!reference.startsWith("#/")) return undefined;
  let value: unknown = root;
  for (const part of reference.slice(2).split("/")) {
    const name = unescapePointer(part);
    value = isObject(value) || Array.isArray(value) ? (value as Record<string, unknown>)[name] : undefined;
  }
  return value;
}

function unescapePointer(part: string): string {
  try {
    return decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~");
  } catch {
    return part;
  }
}

/** Returns the options of an enumeration: `enum`, or `oneOf` of titled constants. */
export function optionsOf(schema: Schema): Option[] | undefined {
  const { enum: values, enumNames } = schema;
  if (Array.isArray(values) && values.length > 0) {
    const names = Array.isArray(enumNames) ? enumNames : [];
    return values.map((value, index) => ({ value, label: stringOf(names[index]) ?? labelOf(value) }));
  }
  const branches = schema["oneOf"] ?? schema["anyOf"];
  if (!Array.isArray(branches) || branches.length === 0) return undefined;
  const options: Option[] = [];
  for (const branch of branches) {
    if (!isObject(branch) || !("const" in branch)) return undefined;
    options.push({
      value: branch["const"],
      label: stringOf(branch["title"]) ?? labelOf(branch["const"]),
      description: stringOf(branch["description"]),
    });
  }
  return options;
}

/** Returns the label of a value. */
export function labelOf(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}

/** Returns the type of a schema; a union with `null` makes it nullable. */
export function typeOf(schema: Schema): { type: string | undefined; nullable: boolean } {
  const { type } = schema;
  if (typeof type === "string") return { type, nullable: false };
  if (Array.isArray(type)) {
    const others = type.filter((each) => each !== "null");
    return { type: others.length === 1 ? stringOf(others[0]) : undefined, nullable: others.length < type.length };
  }
  if (isObject(schema["properties"])) return { type: "object", nullable: false };
  return { type: undefined, nullable: false };
}
