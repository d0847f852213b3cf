// Writes TypeScript types for JSON Schemas.

export function nameIn({ $ref }) {
  return $ref.slice("#/$defs/".length);
}

export function comment(description, indent = "") {
  return description === undefined ? "" : `${indent}/** ${description.replaceAll("\n", " ").replaceAll("*/", "* /")} */\n`;
}

export function literal(value) {
  return JSON.stringify(value);
}

/** Writes a field's name, in quotes where it is no identifier. */
function key(name) {
  return /^[A-Za-z_$][\w$]*$/.test(name) ? name : literal(name);
}

/** Merges two schemas of one object; where both describe a field, the second adds to the first. */
export function merge(first, second) {
  const properties = { ...first.properties };
  for (const [name, member] of Object.entries(second.properties ?? {})) {
    const before = properties[name];
    const both = before?.properties !== undefined && member?.properties !== undefined;
    properties[name] = both ? merge(before, member) : member;
  }
  const required = [...new Set([...(first.required ?? []), ...(second.required ?? [])])];
  // A field may be required by name alone: it is there, and anything.
  for (const name of required) properties[name] ??= true;
  const { if: _, then: __, else: ___, allOf: ____, ...rest } = first;
  const { properties: _____, required: ______, ...more } = second;
  return { ...rest, ...more, properties, required };
}

/** Returns the field that a condition tests and the values it accepts; undefined if it tests anything else. */
function wanted(condition) {
  const [[name, member] = [], ...others] = Object.entries(condition.if.properties ?? {});
  const values = member?.const === undefined ? member?.enum : [member.const];
  return others.length === 0 && values !== undefined ? { name, values } : undefined;
}

/** Returns the object types that a schema with conditions or alternatives allows. */
export function variants(schema) {
  const conditions = [...(schema.allOf ?? []), ...(schema.if === undefined ? [] : [schema])].filter((each) => each.if !== undefined && wanted(each) !== undefined);
  const { name } = conditions.length === 0 ? {} : wanted(conditions[0]);
  const values = schema.properties?.[name]?.enum;
  if (values !== undefined) {
    // Values for which the same holds are one variant.
    const groups = new Map();
    for (const value of values) {
      const holds = conditions.map((condition) => wanted(condition).values.includes(value)).join();
      groups.set(holds, [...(groups.get(holds) ?? []), value]);
    }
    return [...groups.values()].flatMap((group) => {
      const narrowed = merge(schema, { properties: { [name]: { ...schema.properties[name], enum: group } } });
      const holding = conditions.map((condition) => (wanted(condition).values.includes(group[0]) ? condition.then : condition.else));
      return variants(holding.reduce((all, each) => (each === undefined ? all : merge(all, each)), narrowed));
    });
  }
  const alternatives = schema.oneOf ?? schema.anyOf;
  if (schema.properties === undefined || alternatives?.every((each) => Object.keys(each).join() === "required") !== true) return [schema];
  const { oneOf: _, anyOf: __, ...shared } = schema;
  return alternatives.map((each) => {
    // Of `oneOf`, the others must not be there.
    const others = schema.oneOf === undefined ? [] : alternatives.flatMap(({ required }) => required).filter((name) => !each.required.includes(name));
    return merge(merge(shared, each), { properties: Object.fromEntries(others.map((name) => [name, false])) });
  });
}

/** Writes types; `called` tells what a definition is called in TypeScript, `known` what a field is beyond its schema. */
export class TypeWriter {
  constructor(called, known = {}) {
    this.called = called;
    this.known = known;
  }

  /** Writes the type that a schema describes. */
  typeOf(schema, indent = "") {
    if (schema === true) return "unknown";
    if (schema === false) return "never";
    if (schema.$ref !== undefined) return this.called(nameIn(schema));
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

  /** Writes an index signature for objects without required fields: TypeScript refuses values that have only other fields. */
  othersOf(schema, indent) {
    return (schema.required ?? []).length === 0 ? `${indent}[field: string]: unknown;\n` : "";
  }

  membersOf(schema, indent, name = "", leftOut = []) {
    const required = new Set(schema.required ?? []);
    const members = Object.entries(schema.properties).filter(([field]) => !leftOut.includes(field));
    return members
      .map(([field, member]) => {
        const type = this.known[`${name}.${field}`] ?? this.typeOf(member, indent);
        // What is handed to the server may be handed over as undefined.
        const absent = required.has(field) ? "" : name.startsWith("New") ? " | undefined" : "";
        return `${comment(member.description, indent)}${indent}${key(field)}${required.has(field) ? "" : "?"}: ${type}${type === "unknown" ? "" : absent};\n`;
      })
      .join("");
  }
}
