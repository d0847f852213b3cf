import DOMPurify from "dompurify";
import MarkdownIt from "markdown-it";
import cjkFriendly from "markdown-it-cjk-friendly";
import { highlight } from "./highlight";

const markdown = new MarkdownIt({ html: false, linkify: true, breaks: false, highlight });
// Plain CommonMark leaves `**加粗：**文字` as asterisks.
markdown.use(cjkFriendly);

// What a run wrote must not make the browser call anybody: a remote image becomes a link to it.
markdown.renderer.rules.image = (tokens, index) => {
  const token = tokens[index];
  if (token === undefined) return "";
  const source = String(token.attrGet("src") ?? "");
  const words = markdown.utils.escapeHtml(token.content || source);
  const address = markdown.utils.escapeHtml(source);
  if (/^(data:image\/(png|jpeg|gif|webp|avif);|blob:)/i.test(source)) return `<img src="${address}" alt="${words}">`;
  return `<a href="${address}" data-image="">${words}</a>`;
};

// Columns are aligned by class: the content security policy forbids style attributes, and would complain of each.
markdown.core.ruler.push("alignment", ({ tokens }) => {
  for (const token of tokens) {
    const side = /^text-align:\s*(left|center|right)$/.exec(String(token.attrGet("style") ?? ""))?.[1];
    if (side !== undefined) token.attrs = [["class", `align-${side}`]];
  }
});

const allowedTags = [
  "p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "strong", "em", "s", "del", "code", "pre", "blockquote",
  "ul", "ol", "li", "a", "table", "thead", "tbody", "tr", "th", "td", "span", "img",
];
const allowedAttributes = ["href", "title", "class", "start", "src", "alt", "target", "rel", "data-image"];

/** One block at the top of a document: a fence with its code, or anything else with its source. */
export type Block = { kind: "code"; language: string; code: string } | { kind: "prose"; source: string };

/** Turns the source of prose into HTML that is safe to show. */
export function renderProse(source: string): string {
  return sanitize(markdown.render(source));
}

/** Turns code into HTML with light colours, safe to show. */
export function renderCode(code: string, language: string): string {
  return sanitize(highlight(code, language));
}

function sanitize(html: string): string {
  const clean = DOMPurify.sanitize(html, {
    ALLOWED_TAGS: allowedTags,
    ALLOWED_ATTR: allowedAttributes,
    ALLOWED_URI_REGEXP: /^(?:(?:https?|mailto|tel|blob):|data:image\/(?:png|jpeg|gif|webp|avif);|[^a-z]|[a-z+.-]+(?:[^a-z+.\-:]|$))/i,
    RETURN_DOM_FRAGMENT: true,
  });
  for (const link of clean.querySelectorAll("a")) {
    if (!link.hasAttribute("href")) continue;
    link.target = "_blank";
    link.rel = "noopener noreferrer nofollow";
  }
  for (const image of clean.querySelectorAll("img")) {
    if (!/^(data|blob):/i.test(image.getAttribute("src") ?? "")) image.remove();
  }
  for (const table of clean.querySelectorAll("table")) {
    // A wide table scrolls by itself; a region that scrolls must be reachable by keyboard.
    const frame = document.createElement("div");
    frame.className = "table-frame";
    frame.tabIndex = 0;
    table.replaceWith(frame);
    frame.append(table);
  }
  const holder = document.createElement("div");
  holder.append(clean);
  return holder.innerHTML;
}

/**
 * Cuts a growing text into top-level blocks. A block that another one follows never changes again, so only the
 * last one is read anew when text is added: a long answer costs no more per piece than a short one.
 */
export class BlockReader {
  private text = "";
  private settledTo = 0;
  private settled: Block[] = [];
  private shown: readonly Block[] = [];

  /** Gives the blocks of the whole text. */
  read(text: string): readonly Block[] {
    if (text === this.text) return this.shown;
    if (!text.startsWith(this.text)) {
      this.settledTo = 0;
      this.settled = [];
    }
    this.text = text;
    const rest = text.slice(this.settledTo);
    const found = cut(rest);
    const last = found.pop();
    if (last === undefined) return (this.shown = this.settled.slice());
    if (found.length > 0) {
      for (const { block } of found) this.settled.push(block);
      this.settledTo += last.from;
    }
    return (this.shown = [...this.settled, last.block]);
  }
}

function cut(source: string): { block: Block; from: number }[] {
  const tokens = markdown.parse(source, {});
  const starts = lineStarts(source);
  const blocks: { block: Block; from: number }[] = [];
  for (const token of tokens) {
    if (token.level !== 0 || token.map === null || token.nesting < 0) continue;
    const from = starts[token.map[0]] ?? 0;
    const to = starts[token.map[1]] ?? source.length;
    const block: Block =
      token.type === "fence"
        ? { kind: "code", language: token.info.trim().split(/\s+/)[0] ?? "", code: token.content }
        : { kind: "prose", source: source.slice(from, to) };
    blocks.push({ block, from });
  }
  return blocks;
}

function lineStarts(source: string): number[] {
  const starts = [0];
  for (let at = source.indexOf("\n"); at !== -1; at = source.indexOf("\n", at + 1)) starts.push(at + 1);
  return starts;
}
