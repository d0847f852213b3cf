import DOMPurify from "dompurify";
import MarkdownIt from "markdown-it";
import cjkFriendly from "markdown-it-cjk-friendly";
import { highlight } from "./highlight";

const markdown = new MarkdownIt({ html: false, linkify: true, breaks: false, highlight });
// Plain CommonMark leaves `**加粗：**文字` as asterisks.
markdown.use(cjkFriendly);

// The output of a run must not cause requests: a remote image becomes a link.
markdown.renderer.rules.image = (tokens, index) => {
  const token = tokens[index];
  if (token === undefined) return "";
  const source = String(token.attrGet("src") ?? "");
  const alt = markdown.utils.escapeHtml(token.content || source);
  const url = markdown.utils.escapeHtml(source);
  if (/^(data:image\/(png|jpeg|gif|webp|avif);|blob:)/i.test(source)) return `<img src="${url}" alt="${alt}">`;
  return `<a href="${url}" data-image="">${alt}</a>`;
};

// Columns are aligned by class: the content security policy forbids style attributes.
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

/** A top-level block: a code fence, or anything else with its source. */
export type Block = { kind: "code"; language: string; code: string } | { kind: "prose"; source: string };

/** Renders Markdown to sanitized HTML. */
export function renderProse(source: string): string {
  return sanitize(markdown.render(source));
}

/** Renders code to sanitized, highlighted HTML. */
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
    // A wide table scrolls by itself; a scrollable region must be focusable.
    const container = document.createElement("div");
    container.className = "table-container";
    container.tabIndex = 0;
    table.replaceWith(container);
    container.append(table);
  }
  const holder = document.createElement("div");
  holder.append(clean);
  return holder.innerHTML;
}

/**
 * Splits a growing text into top-level blocks. Only the last block can change, so only it is parsed again when text is
 * appended: a delta of a long text costs no more than of a short one.
 */
export class BlockParser {
  private text = "";
  private stableLength = 0;
  private stableBlocks: Block[] = [];
  private blocks: readonly Block[] = [];

  /** Returns the blocks of the text. */
  parse(text: string): readonly Block[] {
    if (text === this.text) return this.blocks;
    if (!text.startsWith(this.text)) {
      this.stableLength = 0;
      this.stableBlocks = [];
    }
    this.text = text;
    const rest = text.slice(this.stableLength);
    const found = splitBlocks(rest);
    const last = found.pop();
    if (last === undefined) return (this.blocks = this.stableBlocks.slice());
    if (found.length > 0) {
      for (const { block } of found) this.stableBlocks.push(block);
      this.stableLength += last.from;
    }
    return (this.blocks = [...this.stableBlocks, last.block]);
  }
}

function splitBlocks(source: string): { block: Block; from: number }[] {
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
