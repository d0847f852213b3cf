/** A text of a run. */
export interface RunText {
  id: string;
  content: string;
}

/** What a whole text adds to a run: nothing, the rest of its last message, or a new message. */
export type WholeComparison = { adds: "nothing" } | { adds: "rest"; rest: string } | { adds: "message" };

/**
 * Compares a whole text with the texts of a run, ignoring white space.
 *
 * It adds nothing if it equals a message or the last messages joined, or is a prefix of the last message or of all.
 * It adds the rest if it begins with the last messages joined, as many as possible.
 */
export function compareWhole(texts: readonly RunText[], whole: string): WholeComparison {
  const known = texts.map((text) => withoutWhitespace(text.content)).filter((content) => content !== "");
  const compact = withoutWhitespace(whole);
  const last = known.at(-1) ?? "";
  if (compact === "" || known.includes(compact) || last.startsWith(compact) || known.join("").startsWith(compact)) return { adds: "nothing" };
  for (let from = 0; from < known.length; from++) {
    const tail = known.slice(from).join("");
    if (tail === compact) return { adds: "nothing" };
    if (compact.startsWith(tail)) return { adds: "rest", rest: restAfter(whole, tail.length, texts.at(-1)?.content ?? "") };
  }
  return { adds: "message" };
}

/** Returns the text after `length` characters other than white space, without the white space at the end of `before`. */
function restAfter(whole: string, length: number, before: string): string {
  let end = 0;
  for (let remaining = length; remaining > 0; end++) if (!/\s/.test(whole[end] ?? "")) remaining--;
  const rest = whole.slice(end);
  const trailing = before.slice(before.trimEnd().length);
  return rest.startsWith(trailing) ? rest.slice(trailing.length) : rest;
}

function withoutWhitespace(text: string): string {
  return text.replace(/\s+/g, "");
}
