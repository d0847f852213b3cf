/** A text of a run. */
export interface ToldText {
  id: string;
  content: string;
}

/** What a whole text says beyond what a run has told: nothing, the rest of its last message, or a message of its own. */
export type Compared = { adds: "nothing" } | { adds: "rest"; rest: string } | { adds: "message" };

/**
 * Compares a whole text with what a run has told, white space left out.
 *
 * Equal to a message or to the last messages joined, or a beginning of the last message or of all: it adds nothing.
 * Where it begins with the last messages joined, as many as possible, it adds the rest.
 */
export function compareWhole(texts: readonly ToldText[], whole: string): Compared {
  const told = texts.map((text) => words(text.content)).filter((content) => content !== "");
  const given = words(whole);
  const last = told.at(-1) ?? "";
  if (given === "" || told.includes(given) || last.startsWith(given) || told.join("").startsWith(given)) return { adds: "nothing" };
  for (let from = 0; from < told.length; from++) {
    const tail = told.slice(from).join("");
    if (tail === given) return { adds: "nothing" };
    if (given.startsWith(tail)) return { adds: "rest", rest: restAfter(whole, tail.length, texts.at(-1)?.content ?? "") };
  }
  return { adds: "message" };
}

/** Gives what follows a number of characters that are no white space, without the white space that the text before ends with. */
function restAfter(whole: string, length: number, before: string): string {
  let at = 0;
  for (let left = length; left > 0; at++) if (!/\s/.test(whole[at] ?? "")) left--;
  const rest = whole.slice(at);
  const trailing = before.slice(before.trimEnd().length);
  return rest.startsWith(trailing) ? rest.slice(trailing.length) : rest;
}

function words(text: string): string {
  return text.replace(/\s+/g, "");
}
