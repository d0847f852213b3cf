import type { Dictionary, Format } from "../../text";
import type { Wrong } from "./check";

/** Says what is wrong with a field, in the language of the page; a rule without words says what the checker said. */
export function wordsOf(wrong: Wrong, t: Dictionary, format: Format): string {
  const say = t.run.form.wrong;
  const { keyword, limit } = wrong;
  const number = typeof limit === "number" ? limit : undefined;
  switch (keyword) {
    case "required":
      return say.required;
    case "number":
      return say.number;
    case "json":
      return say.json;
    case "type":
      if (limit === "integer") return say.whole;
      if (limit === "number") return say.number;
      return say.type;
    case "format":
      return say.format[limit as keyof typeof say.format] ?? say.other;
    case "pattern":
      return say.pattern;
    case "enum":
    case "const":
      return say.choice;
    case "uniqueItems":
      return say.unique;
    case "minLength":
    case "maxLength":
    case "minItems":
    case "maxItems":
      return number === undefined ? wrong.message : say[keyword](number);
    case "minimum":
    case "maximum":
    case "exclusiveMinimum":
    case "exclusiveMaximum":
    case "multipleOf":
      return number === undefined ? wrong.message : say[keyword](format.number(number));
    default:
      return wrong.message === "" ? say.other : wrong.message;
  }
}
