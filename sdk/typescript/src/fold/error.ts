import type { ErrorInfo } from "../generated.js";

/** Converts an error that an agent reports as a string or an object, in the same way as the server. */
export function errorOf(value: unknown): ErrorInfo {
  if (typeof value !== "object" || value === null) return { message: typeof value === "string" ? value : (JSON.stringify(value) ?? "failed") };
  const fields = value as Record<string, unknown>;
  const code = fields["code"] === undefined || fields["code"] === null ? undefined : String(fields["code"]);
  const message = typeof fields["message"] === "string" ? fields["message"] : (code ?? "failed");
  return { ...fields, message, ...(code !== undefined && { code }) };
}
