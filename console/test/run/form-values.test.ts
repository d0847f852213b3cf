import { describe, expect, it } from "vitest";
import { validatorFor, serverErrors, type ValidationError } from "../../src/run/forms/validate";
import { replaceAt, emptyDraft, valueOf, type Draft } from "../../src/run/forms/draft";
import { fieldsOf } from "../../src/run/forms/fields";
import { stepNumber } from "../../src/run/forms/FieldView";
import { titleAt } from "../../src/run/forms/useFormState";
import { errorText } from "../../src/run/forms/errorText";
import { dictionaries } from "../../src/text";
import { formatFor } from "../../src/text/format";

const trip = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  type: "object",
  required: ["name", "email"],
  additionalProperties: false,
  properties: {
    name: { type: "string", minLength: 1, maxLength: 5, title: "Name" },
    email: { type: "string", format: "email", title: "E-mail" },
    travellers: { type: "integer", minimum: 1, maximum: 9, default: 2 },
    transport: { type: "string", enum: ["train", "plane", "car"], default: "train" },
    interests: { type: "array", uniqueItems: true, maxItems: 1, items: { enum: ["food", "nature"] }, default: ["food"] },
    insurance: { type: "boolean" },
    stops: { type: "array", items: { type: "object", required: ["city"], properties: { city: { type: "string", title: "City" } } } },
    hotel: { type: "object", title: "Hotel", properties: { nights: { type: "integer", maximum: 7, title: "Nights" } } },
  },
};
const form = fieldsOf(trip, undefined);
const check = validatorFor(form, trip);
const english = (errors: ValidationError) => errorText(errors, dictionaries.en, formatFor("en"));

function typed(values: Record<string, Draft>): Draft {
  return Object.entries(values).reduce<Draft>((draft, [name, value]) => replaceAt(draft, [name], value), emptyDraft(form));
}

describe("the values of a form", () => {
  it("defaults are filled in, and empty fields are omitted", () => {
    expect(valueOf(form, typed({ name: "Lin", email: "lin@example.com" }))).toEqual({
      name: "Lin",
      email: "lin@example.com",
      travellers: 2,
      transport: "train",
      interests: ["food"],
    });
  });

  it("numbers stay texts until they are sent", () => {
    expect(check(typed({ travellers: "1e" })).errors).toContainEqual(expect.objectContaining({ pointer: "/travellers", keyword: "number" }));
    expect(valueOf(form, typed({ travellers: " 3 " }))).toMatchObject({ travellers: 3 });
  });

  it("a default can be cleared", () => {
    expect(valueOf(form, typed({ name: "Lin", interests: [], transport: null }))).toMatchObject({ interests: [] });
    expect(valueOf(form, typed({ transport: null }))).not.toHaveProperty("transport");
  });

  it("list items keep their order and keys", () => {
    const stops = [{ key: 4, draft: { city: "B" } }, { key: 1, draft: { city: "A" } }];
    const draft = replaceAt(typed({ stops }), ["stops", 1, "city"], "C");
    expect(valueOf(form, draft)).toMatchObject({ stops: [{ city: "B" }, { city: "C" }] });
  });

  it("JSON input is parsed", () => {
    const any = fieldsOf({}, undefined);
    expect(validatorFor(any, {})('{"a":[1]}').value).toEqual({ a: [1] });
    expect(validatorFor(any, {})("{oops").errors).toEqual([expect.objectContaining({ pointer: "", keyword: "json" })]);
  });

  it("a date-time is sent with its offset, a time with seconds and offset", () => {
    const at = fieldsOf({ type: "object", properties: { at: { type: "string", format: "date-time" }, daily: { type: "string", format: "time" } } }, undefined);
    const value = valueOf(at, { at: "2026-11-15T10:30", daily: "09:15" }) as { at: string; daily: string };
    expect(new Date(value.at).getTime()).toBe(new Date("2026-11-15T10:30").getTime());
    expect(value.daily).toMatch(/^09:15:00(Z|[+-]\d\d:\d\d)$/);
    expect(validatorFor(at, { type: "object", properties: { at: { format: "date-time" }, daily: { format: "time" } } })({ at: "2026-11-15T10:30", daily: "09:15" }).errors).toEqual([]);
  });

  it("arrow keys step within the limits", () => {
    expect(stepNumber("9", 1, { step: 1, min: 1, max: 9 })).toBe("9");
    expect(stepNumber("", 1, { step: 1, min: 1, max: 9 })).toBe("1");
    expect(stepNumber("0.1", 1, { step: 0.2, min: undefined, max: undefined })).toBe("0.3");
    expect(stepNumber("abc", 1, { step: 1, min: 1, max: 9 })).toBe("abc");
  });
});

describe("the validation of a form", () => {
  it("reports one localized error per field", () => {
    const { errors } = check(typed({ name: "Too long", email: "nope", travellers: "12", interests: [0, 1] }));
    expect(Object.fromEntries(errors.map((each) => [each.pointer, english(each)]))).toEqual({
      "/name": "Use at most 5 characters.",
      "/email": "This is not an e-mail address.",
      "/travellers": "Enter 9 or less.",
      "/interests": "At most 1 can be given.",
    });
  });

  it("reports missing values at their fields, also inside lists and objects", () => {
    const { errors } = check(typed({ stops: [{ key: 0, draft: { city: "" } }], hotel: { nights: "9" } }));
    expect(errors.map((each) => [each.pointer, each.keyword])).toEqual(
      expect.arrayContaining([
        ["/name", "required"],
        ["/email", "required"],
        ["/stops/0/city", "required"],
        ["/hotel/nights", "maximum"],
      ]),
    );
    expect(titleAt(form, "/stops/0/city")).toBe("stops › 1 › City");
    expect(titleAt(form, "/hotel/nights")).toBe("Hotel › Nights");
  });

  it("a complete form has no errors", () => {
    expect(check(typed({ name: "Lin", email: "lin@example.com", insurance: true })).errors).toEqual([]);
  });

  it("an unsupported schema is left to the server", () => {
    const odd = { type: "object", properties: { a: { type: "string", pattern: "(" } }, $ref: "#/nowhere" };
    expect(validatorFor(fieldsOf(odd, undefined), odd)({ a: "x" }).errors).toEqual([]);
  });

  it("a pattern with catastrophic backtracking is left to the server", () => {
    const evil = { type: "object", properties: { a: { type: "string", pattern: "^(a+)+$" }, b: { type: "string", pattern: "^[A-Z]{2}$" } } };
    const { errors } = validatorFor(fieldsOf(evil, undefined), evil)({ a: `${"a".repeat(60)}!`, b: "x" });
    expect(errors.map((each) => [each.pointer, english(each)])).toEqual([["/b", "This does not match the required format."]]);
  });

  it("errors inside a choice or JSON are reported at their input", () => {
    const errors = serverErrors([{ pointer: "/interests/0", keyword: "enum", message: "no" }, { pointer: "/stops/0/city", message: "no" }, { pointer: "/more/deep", message: "no" }], form);
    expect(errors.map((each) => each.pointer)).toEqual(["/interests", "/stops/0/city", "/more/deep"]);
    const any = { type: "object", properties: { extra: {} } };
    expect(serverErrors([{ pointer: "/extra/a/b", message: "no" }], fieldsOf(any, undefined))[0]?.pointer).toBe("/extra");
  });

  it("server errors are localized", () => {
    const [errors, other] = serverErrors([{ pointer: "/email", keyword: "format", message: "is no valid email" }, { pointer: "/name", message: "is taken" }], form);
    expect(errors && errorText(errors, dictionaries.zh, formatFor("zh"))).toBe("不是有效的邮箱地址。");
    expect(other && english(other)).toBe("is taken");
  });
});
