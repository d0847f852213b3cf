/** The parsed input of an agent, or the syntax error. */
export type ParsedInput = { ok: true; value: unknown } | { ok: false; reason: string };

/** Parses the JSON input of an agent; an empty text is undefined. */
export function parseInput(text: string): ParsedInput {
  if (text.trim() === "") return { ok: true, value: undefined };
  try {
    return { ok: true, value: JSON.parse(text) as unknown };
  } catch (error) {
    return { ok: false, reason: error instanceof Error ? error.message : String(error) };
  }
}
