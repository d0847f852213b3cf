import type { ErrorInfo } from "../generated.js";

/** Reads an error that a source tells as a text or as an object of its own, as the server does. */
export function errorOf(value: unknown): ErrorInfo {
  if (typeof value !== "object" || value === null) return { message: typeof value === "string" ? value : (JSON.stringify(value) ?? "failed") };
  const told = value as Record<string, unknown>;
  const code = told["code"] === undefined || told["code"] === null ? undefined : String(told["code"]);
  const message = typeof told["message"] === "string" ? told["message"] : (code ?? "failed");
  return { ...told, message, ...(code !== undefined && { code }) };
}
