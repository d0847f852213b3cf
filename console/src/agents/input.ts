/** What was typed as input: a value, nothing, or why it is no JSON. */
export type TypedInput = { ok: true; value: unknown } | { ok: false; reason: string };

/** Reads what was typed as an agent's input. Empty means none. */
export function readInput(text: string): TypedInput {
  if (text.trim() === "") return { ok: true, value: undefined };
  try {
    return { ok: true, value: JSON.parse(text) as unknown };
  } catch (error) {
    return { ok: false, reason: error instanceof Error ? error.message : String(error) };
  }
}
