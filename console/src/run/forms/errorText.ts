import type { Dictionary, Format } from "../../text";
import type { ValidationError } from "./validate";

/** Returns the localized text of a field error; defaults to the message of the validator. */
export function errorText(error: ValidationError, t: Dictionary, format: Format): string {
  const texts = t.run.form.errors;
  const { keyword, limit } = error;
  const number = typeof limit === "number" ? limit : undefined;
  switch (keyword) {
    case "required":
      return texts.required;
    case "number":
      return texts.number;
    case "json":
      return texts.json;
    case "type":
      if (limit === "integer") return texts.integer;
      if (limit === "number") return texts.number;
      return texts.type;
    case "format":
      return texts.format[limit as keyof typeof texts.format] ?? texts.other;
    case "pattern":
      return texts.pattern;
    case "enum":
    case "const":
      return texts.choice;
    case "uniqueItems":
      return texts.unique;
    case "minLength":
    case "maxLength":
    case "minItems":
    case "maxItems":
      return number === undefined ? error.message : texts[keyword](number);
    case "minimum":
    case "maximum":
    case "exclusiveMinimum":
    case "exclusiveMaximum":
    case "multipleOf":
      return number === undefined ? error.message : texts[keyword](format.number(number));
    default:
      return error.message === "" ? texts.other : error.message;
  }
}
