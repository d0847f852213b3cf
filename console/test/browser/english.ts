import type { Page } from "playwright-core";
import { en } from "../../src/text/en";
import { zh } from "../../src/text/zh";

/** A text of the console: as it is, or with places for what it is given. */
type Entry = string | ((...given: never[]) => string) | { readonly [name: string]: Entry };

const hole = "\u0000";

/** Finds English words of the dictionary that a page in Chinese shows, wherever a person could see or hear them. */
export async function englishLeft(page: Page): Promise<string[]> {
  const patterns = [...wordsOf(en as unknown as Entry, zh as unknown as Entry)];
  const shown = await page.evaluate(() => {
    const texts = new Set<string>();
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    // What agents, programs and people wrote is theirs, in whatever language.
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

/** Walks over what is said differently in the two languages. */
function* wordsOf(english: Entry, chinese: Entry): Generator<RegExp> {
  if (typeof english === "object" && typeof chinese === "object") {
    for (const [name, entry] of Object.entries(english)) {
      const other = chinese[name];
      if (other !== undefined) yield* wordsOf(entry, other);
    }
  } else {
    const [said, other] = [english, chinese].map(sample);
    // Names and formats are the same in both.
    if (said !== undefined && said !== other && /[A-Za-z]{2}/.test(said)) yield new RegExp(`^${said.split(hole).map(escape).join(".+")}$`, "s");
  }
}

function sample(entry: Entry): string | undefined {
  if (typeof entry === "string") return entry.trim();
  if (typeof entry !== "function") return undefined;
  const said: unknown = entry(...(Array(entry.length).fill(hole) as never[]));
  return typeof said === "string" ? said.trim() : undefined;
}

function escape(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}
