import { describe, expect, it } from "vitest";
import { fieldsOf, type Field } from "../../src/run/forms/fields";

function one(schema: unknown, ui?: unknown): Field {
  const form = fieldsOf({ type: "object", properties: { it: schema } }, ui);
  if (form.kind !== "group" || form.fields[0] === undefined) throw new Error("no field");
  return form.fields[0];
}

describe("the fields of a schema", () => {
  it("the format of a text selects its input", () => {
    const inputs = ["email", "uri", "date", "time", "date-time", "ipv4"].map((format) => one({ type: "string", format }));
    expect(inputs.map((field) => field.kind === "text" && field.input)).toEqual(["email", "url", "date", "time", "datetime-local", "text"]);
  });

  it("a long text is multi-line, as is one with a textarea widget", () => {
    expect(one({ type: "string", maxLength: 2000 })).toMatchObject({ kind: "text", isMultiline: true });
    expect(one({ type: "string", maxLength: 60 })).toMatchObject({ kind: "text", isMultiline: false });
    expect(one({ type: "string" }, { it: { widget: "textarea", placeholder: "Say it" } })).toMatchObject({ isMultiline: true, placeholder: "Say it" });
  });

  it("a number keeps its limits and its step", () => {
    expect(one({ type: "integer", minimum: 1, maximum: 9 })).toMatchObject({ kind: "number", isInteger: true, min: 1, max: 9, step: 1 });
    expect(one({ type: "integer", exclusiveMinimum: 0 })).toMatchObject({ min: 1 });
    expect(one({ type: "number", multipleOf: 0.5 })).toMatchObject({ isInteger: false, step: 0.5 });
  });

  it("few options are radio buttons, many a select", () => {
    expect(one({ enum: ["a", "b"] })).toMatchObject({ kind: "choice", isExpanded: true });
    expect(one({ type: "string", enum: ["a", "b", "c", "d", "e"] })).toMatchObject({ kind: "choice", isExpanded: false });
  });

  it("titled constants are options with their titles", () => {
    const field = one({ oneOf: [{ const: 1, title: "One" }, { const: 2, title: "Two", description: "more" }] });
    expect(field).toMatchObject({ kind: "choice", options: [{ value: 1, label: "One" }, { value: 2, label: "Two", description: "more" }] });
  });

  it("a list of an enumeration is a multiple choice", () => {
    expect(one({ type: "array", items: { enum: ["x", "y"] } })).toMatchObject({ kind: "multi-choice", options: [{ value: "x" }, { value: "y" }] });
  });

  it("lists, objects and constants nest", () => {
    const field = one({ type: "array", minItems: 1, items: { type: "object", properties: { kind: { const: "stop" }, at: { type: "string" } } } });
    expect(field).toMatchObject({ kind: "list", min: 1, item: { kind: "group", fields: [{ kind: "constant", value: "stop" }, { kind: "text", name: "at" }] } });
  });

  it("a nullable schema has the field of its other type", () => {
    expect(one({ type: ["string", "null"] })).toMatchObject({ kind: "text", nullable: true });
    expect(one({ anyOf: [{ type: "integer" }, { type: "null" }], title: "Age" })).toMatchObject({ kind: "number", nullable: true, title: "Age" });
  });

  it("references are resolved, and allOf is merged", () => {
    const form = fieldsOf(
      {
        $defs: { place: { type: "object", properties: { city: { type: "string" } }, required: ["city"] } },
        type: "object",
        properties: { home: { allOf: [{ $ref: "#/$defs/place" }, { properties: { zip: { type: "string" } } }], title: "Home" } },
      },
      undefined,
    );
    expect(form).toMatchObject({ fields: [{ kind: "group", title: "Home", fields: [{ name: "city", required: true }, { name: "zip", required: false }] }] });
  });

  it("an unsupported schema is a JSON field, and recursion ends", () => {
    for (const schema of [{}, { type: "object" }, { anyOf: [{ type: "string" }, { type: "object" }] }, { $ref: "https://elsewhere/x" }, false]) {
      expect(one(schema).kind).toBe("json");
    }
    const loop = { type: "object", properties: { child: { $ref: "#" } } };
    expect(JSON.stringify(fieldsOf(loop, undefined)).length).toBeLessThan(50_000);
    expect(fieldsOf({ $ref: "#" }, undefined).kind).toBe("json");
  });

  it("a boolean constant is not filled in", () => {
    expect(one({ type: "boolean", const: true, title: "I agree" })).toMatchObject({ kind: "boolean" });
  });

  it("the decision of an approval is not a field", () => {
    const schema = { type: "object", properties: { approved: { type: "boolean" }, note: { type: "string" } } };
    expect(fieldsOf(schema, undefined, ["approved"])).toMatchObject({ fields: [{ name: "note" }] });
  });
});
