import { describe, expect, it } from "vitest";
import { highlight } from "../src/ui/markdown/highlight";
import { BlockParser, renderCode, renderProse } from "../src/ui/markdown/parse";

describe("markdown", () => {
  it.each([
    ["**加粗：**文字", "<strong>加粗：</strong>文字"],
    ["这是**“引用”**的词", "这是<strong>“引用”</strong>的词"],
    ["*注意。*后面", "<em>注意。</em>后面"],
    ["~~旧价：~~新价", "<s>旧价：</s>新价"],
  ])("emphasis beside Chinese punctuation is emphasis: %s", (source, html) => {
    expect(renderProse(source)).toContain(html);
  });

  it("a link opens in a new tab without opener", () => {
    expect(renderProse("[site](https://example.com/a?b=1)")).toContain(
      '<a href="https://example.com/a?b=1" target="_blank" rel="noopener noreferrer nofollow">site</a>',
    );
  });

  it("a remote image is a link, and is not loaded", () => {
    const html = renderProse("![a chart](https://example.com/x.png)");
    expect(html).not.toContain("<img");
    expect(html).toContain('href="https://example.com/x.png"');
    expect(html).toContain("a chart");
  });

  it("an embedded image is shown", () => {
    expect(renderProse("![dot](data:image/png;base64,iVBORw0KGgo=)")).toContain('<img src="data:image/png;base64,iVBORw0KGgo="');
  });

  it("columns are aligned without style attributes, which the content security policy forbids", () => {
    const html = renderProse("| a | b |\n|:-:|--:|\n| 1 | 2 |");
    expect(html).toContain('<td class="align-center">1</td>');
    expect(html).toContain('<td class="align-right">2</td>');
    expect(html).not.toContain("style=");
  });

  it("a table can be scrolled by keyboard", () => {
    expect(renderProse("| a |\n|---|\n| 1 |")).toMatch(/<div class="table-container" tabindex="0"><table>/);
  });

  it.each([
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](data:text/html,<script>alert(1)</script>)",
    "[x](vbscript:msgbox(1))",
    "![x](javascript:alert(1))",
    '![x](data:image/svg+xml,<svg onload="alert(1)">)',
    '[x](https://a.example "onmouseover=alert(1)")',
    "<iframe src=//evil.example></iframe>",
    "<style>*{display:none}</style>",
    '<a href="https://a.example" style="position:fixed;inset:0">x</a>',
    "<svg><g onload=alert(1)></g></svg>",
    "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)>",
    "```html\n<script>alert(1)</script>\n```",
    '```"><img src=x onerror=alert(1)>\ncode\n```',
  ])("nothing in it can run: %s", (source) => {
    const frame = document.createElement("div");
    frame.innerHTML = renderProse(source);
    expect(frame.querySelector("script, iframe, style, svg, math, object, embed, form")).toBeNull();
    for (const element of frame.querySelectorAll("*")) {
      for (const { name, value } of element.attributes) {
        expect(name).not.toMatch(/^on|^style$/i);
        if (name === "href" || name === "src") expect(value).not.toMatch(/^\s*(javascript|vbscript|data:(?!image\/(png|jpeg|gif|webp|avif);))/i);
      }
    }
  });

  it("code keeps every character in every language", () => {
    const code = "let a = '<b>' // & done\n# \"x\n`${y}`\n";
    for (const language of ["", "ts", "python", "sql", "rust", "nonsense", "text"]) {
      const frame = document.createElement("div");
      frame.innerHTML = renderCode(code, language);
      expect(frame.textContent).toBe(code);
      expect(frame.querySelector("b")).toBeNull();
    }
  });

  it("highlights comments, strings, numbers and keywords", () => {
    expect(highlight('return "a" // 1', "js")).toBe(
      '<span class="tok-k">return</span> <span class="tok-s">&quot;a&quot;</span> <span class="tok-c">// 1</span>',
    );
    expect(highlight("x = 42 # n", "python")).toBe('x = <span class="tok-n">42</span> <span class="tok-c"># n</span>');
  });
});

describe("a streamed text", () => {
  const whole = [
    "# 标题\n\n第一段，**加粗：**文字。\n",
    "- one\n- two\n\n  still two\n- three\n",
    "```python\nprint('hi')\n\n# not a heading\n```\n",
    "> quote\n> more\n\n1. a\n2. b\n",
    "| a | b |\n|---|---|\n| 1 | 2 |\n",
    "Title\n===\n\nlast paragraph",
  ].join("\n");

  it("has the same blocks at once and letter by letter", () => {
    const grown = new BlockParser();
    let blocks = grown.parse("");
    for (let end = 1; end <= whole.length; end += 1) blocks = grown.parse(whole.slice(0, end));
    expect(blocks).toEqual(new BlockParser().parse(whole));
    expect(blocks.map((block) => block.kind)).toContain("code");
  });

  it("keeps complete blocks", () => {
    const parser = new BlockParser();
    const before = parser.parse("first\n\nsecond\n\nthird");
    const after = parser.parse("first\n\nsecond\n\nthird and more");
    expect(after[0]).toBe(before[0]);
    expect(after[1]).toBe(before[1]);
    expect(after[2]).toEqual({ kind: "prose", source: "third and more" });
  });

  it("can be replaced by another text", () => {
    const parser = new BlockParser();
    parser.parse("first\n\nsecond");
    expect(parser.parse("other")).toEqual([{ kind: "prose", source: "other" }]);
    expect(parser.parse("")).toEqual([]);
  });
});
