import type { Page } from "playwright-core";
import { en } from "../../src/text/en";
import { zh } from "../../src/text/zh";

/** A text of a dictionary: a string, a function or a group. */
type Entry = string | ((...given: never[]) => string) | { readonly [name: string]: Entry };

const placeholder = "\u0000";

/** Returns the English texts of the dictionary that a Chinese page shows or reads out. */
export async function untranslatedTexts(page: Page): Promise<string[]> {
  const patterns = [...patternsOf(en as unknown as Entry, zh as unknown as Entry)];
  const shown = await page.evaluate(() => {
    const texts = new Set<string>();
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    // Texts of agents, programs and people may be in any language.
    const foreign = "code, pre, .markdown, .mono, option, textarea, [lang=en], [translate=no]";
    for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
      if (node.parentElement?.closest(foreign) === null) texts.add(node.textContent?.trim() ?? "");
    }
    for (const element of document.body.querySelectorAll("[aria-label], [title], [placeholder], [alt]")) {
      for (const name of ["aria-label", "title", "placeholder", "alt"]) texts.add(element.getAttribute(name)?.trim() ?? "");
    }
    return [document.title, ...texts];
  });
  return shown.filter((text) => patterns.some((pattern) => pattern.test(text)));
}

/** Yields patterns of the texts that differ between the languages. */
function* patternsOf(english: Entry, chinese: Entry): Generator<RegExp> {
  if (typeof english === "object" && typeof chinese === "object") {
    for (const [name, entry] of Object.entries(english)) {
      const other = chinese[name];
      if (other !== undefined) yield* patternsOf(entry, other);
    }
  } else {
    const [text, other] = [english, chinese].map(sample);
    // Names and formats are the same in both languages.
    if (text !== undefined && text !== other && /[A-Za-z]{2}/.test(text)) yield new RegExp(`^${text.split(placeholder).map(escape).join(".+")}$`, "s");
  }
}

function sample(entry: Entry): string | undefined {
  if (typeof entry === "string") return entry.trim();
  if (typeof entry !== "function") return undefined;
  const text: unknown = entry(...(Array(entry.length).fill(placeholder) as never[]));
  return typeof text === "string" ? text.trim() : undefined;
}

function escape(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}
