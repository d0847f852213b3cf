// Converts JSON Schemas to TypeScript types.

export function nameIn({ $ref }) {
  return $ref.slice("#/$defs/".length);
}

export function comment(description, indent = "") {
  return description === undefined ? "" : `${indent}/** ${description.replaceAll("\n", " ").replaceAll("*/", "* /")} */\n`;
}

export function literal(value) {
  return JSON.stringify(value);
}

/** Returns a field's name, quoted if it is not an identifier. */
function key(name) {
  return /^[A-Za-z_$][\w$]*$/.test(name) ? name : literal(name);
}

/** Merges two schemas of one object; if both describe a field, the second extends the first. */
export function merge(first, second) {
  const properties = { ...first.properties };
  for (const [name, member] of Object.entries(second.properties ?? {})) {
    const before = properties[name];
    const both = before?.properties !== undefined && member?.properties !== undefined;
    properties[name] = both ? merge(before, member) : member;
  }
  const required = [...new Set([...(first.required ?? []), ...(second.required ?? [])])];
  // A field that is required without a schema can be anything.
  for (const name of required) properties[name] ??= true;
  const { if: _, then: __, else: ___, allOf: ____, ...rest } = first;
  const { properties: _____, required: ______, ...more } = second;
  return { ...rest, ...more, properties, required };
}

/** Returns the field that a condition tests and the values it accepts; undefined if it tests anything else. */
function tested(condition) {
  const [[name, member] = [], ...others] = Object.entries(condition.if.properties ?? {});
  const values = member?.const === undefined ? member?.enum : [member.const];
  return others.length === 0 && values !== undefined ? { name, values } : undefined;
}

/** Returns the object types that a schema with conditions or alternatives allows. */
export function variants(schema) {
  const conditions = [...(schema.allOf ?? []), ...(schema.if === undefined ? [] : [schema])].filter((each) => each.if !== undefined && tested(each) !== undefined);
  const { name } = conditions.length === 0 ? {} : tested(conditions[0]);
  const values = schema.properties?.[name]?.enum;
  if (values !== undefined) {
    // Values that meet the same conditions form one variant.
    const groups = new Map();
    for (const value of values) {
      const met = conditions.map((condition) => tested(condition).values.includes(value)).join();
      groups.set(met, [...(groups.get(met) ?? []), value]);
    }
    return [...groups.values()].flatMap((group) => {
      const narrowed = merge(schema, { properties: { [name]: { ...schema.properties[name], enum: group } } });
      const applied = conditions.map((condition) => (tested(condition).values.includes(group[0]) ? condition.then : condition.else));
      return variants(applied.reduce((all, each) => (each === undefined ? all : merge(all, each)), narrowed));
    });
  }
  const alternatives = schema.oneOf ?? schema.anyOf;
  if (schema.properties === undefined || alternatives?.every((each) => Object.keys(each).join() === "required") !== true) return [schema];
  const { oneOf: _, anyOf: __, ...shared } = schema;
  return alternatives.map((each) => {
    // With `oneOf`, the other alternatives are forbidden.
    const others = schema.oneOf === undefined ? [] : alternatives.flatMap(({ required }) => required).filter((name) => !each.required.includes(name));
    return merge(merge(shared, each), { properties: Object.fromEntries(others.map((name) => [name, false])) });
  });
}

/** Writes types; `typeName` maps definitions to TypeScript names, `refined` fields to more precise types. */
export class TypeWriter {
  constructor(typeName, refined = {}) {
    this.typeName = typeName;
    this.refined = refined;
  }

  /** Returns the type of a schema. */
  typeOf(schema, indent = "") {
    if (schema === true) return "unknown";
    if (schema === false) return "never";
    if (schema.$ref !== undefined) return this.typeName(nameIn(schema));
    if (schema.const !== undefined) return literal(schema.const);
    if (schema.enum !== undefined) return schema.enum.map(literal).join(" | ");
    const forms = variants(schema);
    if (forms.length > 1) return forms.map((form) => this.typeOf(form, indent)).join(" | ");
    const [form] = forms;
    const choices = form.oneOf ?? form.anyOf;
    if (choices !== undefined) return choices.map((choice) => this.typeOf(choice, indent)).join(" | ");
    if (Array.isArray(form.type)) return form.type.map((type) => this.typeOf({ ...form, type }, indent)).join(" | ");
    switch (form.type) {
      case "string":
      case "boolean":
      case "null":
      case "undefined":
        return form.type;
      case "integer":
      case "number":
        return "number";
      case "array": {
        const item = this.typeOf(form.items ?? {}, indent);
        return item.includes(" | ") ? `(${item})[]` : `${item}[]`;
      }
      case "object":
        if (form.properties === undefined) return "Record<string, unknown>";
        return `{\n${this.membersOf(form, `${indent}  `)}${this.othersOf(form, `${indent}  `)}${indent}}`;
      default:
        return "unknown";
    }
  }

  /** Returns an index signature for objects without required fields: TypeScript rejects values that have only other fields. */
  othersOf(schema, indent) {
    return (schema.required ?? []).length === 0 ? `${indent}[field: string]: unknown;\n` : "";
  }

  membersOf(schema, indent, name = "", omitted = []) {
    const required = new Set(schema.required ?? []);
    const members = Object.entries(schema.properties).filter(([field]) => !omitted.includes(field));
    return members
      .map(([field, member]) => {
        const type = this.refined[`${name}.${field}`] ?? this.typeOf(member, indent);
        // Fields of requests may be undefined.
        const absent = required.has(field) ? "" : name.startsWith("New") ? " | undefined" : "";
        return `${comment(member.description, indent)}${indent}${key(field)}${required.has(field) ? "" : "?"}: ${type}${type === "unknown" ? "" : absent};\n`;
      })
      .join("");
  }
}
