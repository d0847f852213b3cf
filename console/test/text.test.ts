import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { parseSync } from "vite";
import { describe, expect, it } from "vitest";
import { chooseLanguage, dictionaries } from "../src/text";

const source = join(import.meta.dirname, "../src");

function keysOf(value: unknown, path = ""): string[] {
  if (typeof value !== "object" || value === null) return [`${path}: ${typeof value}`];
  return Object.entries(value).flatMap(([key, child]) => keysOf(child, `${path}/${key}`));
}

function stringsOf(value: unknown, path = ""): [string, string][] {
  if (typeof value === "string") return [[path, value]];
  if (typeof value === "function") {
    const arguments_ = Array.from({ length: value.length }, () => 3);
    return [[path, String(value(...arguments_))]];
  }
  return Object.entries(value as object).flatMap(([key, child]) => stringsOf(child, `${path}/${key}`));
}

describe("languages", () => {
  it("Chinese has the same texts as English", () => {
    expect(keysOf(dictionaries.zh).sort()).toEqual(keysOf(dictionaries.en).sort());
  });

  it("no text is empty", () => {
    for (const words of Object.values(dictionaries)) {
      for (const [path, text] of stringsOf(words)) expect(text.trim(), path).not.toBe("");
    }
  });

  it("Chinese texts are Chinese, except names", () => {
    const names = /^\/(appName|runs\/tokens)$/;
    const untranslated = stringsOf(dictionaries.zh)
      .filter(([path, text]) => !names.test(path) && !/\p{Script=Han}/u.test(text) && /[A-Za-z]{4,}/.test(text))
      .filter(([path, text]) => stringsOf(dictionaries.en).some(([other, english]) => other === path && english === text))
      .filter(([, text]) => /^[A-Z]?[a-z]+( [a-z]+)*$/.test(text));
    expect(untranslated).toEqual([]);
  });

  it("localized error codes exist, and include all codes of the store", () => {
    const codes = readdirSync(join(import.meta.dirname, "../../docs/errors")).map((page) => page.replace(".md", ""));
    const known = Object.keys(dictionaries.en.error.known);
    expect(known.filter((code) => !codes.includes(code))).toEqual([]);
    expect(known).toEqual(expect.arrayContaining(codes.filter((code) => code.startsWith("store_"))));
  });

  it("the stored language takes precedence over the browser's, and that over English", () => {
    expect(chooseLanguage("zh", ["en-US"])).toBe("zh");
    expect(chooseLanguage(null, ["zh-TW", "en"])).toBe("zh");
    expect(chooseLanguage(null, ["de", "zh-CN"])).toBe("zh");
    expect(chooseLanguage("nonsense", ["fr"])).toBe("en");
  });
});

describe("components", () => {
  const files = readdirSync(source, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".tsx"));

  it.each(files)("%s has no hard-coded texts", (name) => {
    const path = join(source, name);
    expect(bareTexts(path, readFileSync(path, "utf8"))).toEqual([]);
  });

  it("a hard-coded text is found", () => {
    expect(bareTexts("a.tsx", "export const a = <p title='Hello there'>Some words {x ? 'More' : ''}</p>;")).toHaveLength(3);
    expect(bareTexts("a.tsx", "export const a = <p className='x'>{t.words} · {n}</p>;")).toEqual([]);
  });
});

const spoken = new Set(["aria-label", "title", "placeholder", "alt", "label", "aria-description", "aria-roledescription", "detail"]);
/** Keys and symbols are the same in every language. */
const sameEverywhere = /^(Ctrl|Enter|Esc|99\+|[^\p{L}]*)$/u;

interface Node {
  type: string;
  start: number;
  [field: string]: unknown;
}

/** Finds hard-coded texts: text in JSX, and in attributes that are read out. */
function bareTexts(path: string, code: string): string[] {
  const found: string[] = [];
  const note = (node: Node, text: string) => {
    const words = text.trim();
    if (words !== "" && !sameEverywhere.test(words)) {
      found.push(`${relative(source, path)}:${code.slice(0, node.start).split("\n").length} ${words}`);
    }
  };
  const texts = (node: Node | null): void => {
    if (node === null) return;
    if (node.type === "Literal" && typeof node["value"] === "string") note(node, node["value"]);
    if (node.type === "ConditionalExpression") [node["consequent"], node["alternate"]].forEach((branch) => texts(branch as Node));
    if (node.type === "LogicalExpression") texts(node["right"] as Node);
    if (node.type === "TemplateLiteral") {
      for (const piece of node["quasis"] as Node[]) note(piece, String((piece["value"] as { raw: string }).raw));
    }
  };
  const walk = (node: unknown): void => {
    if (Array.isArray(node)) return node.forEach(walk);
    if (typeof node !== "object" || node === null) return;
    const at = node as Node;
    if (at.type === "JSXText") note(at, String(at["value"]));
    if (at.type === "JSXElement" || at.type === "JSXFragment") {
      for (const child of at["children"] as Node[]) {
        if (child.type === "JSXExpressionContainer") texts(child["expression"] as Node);
      }
    }
    if (at.type === "JSXAttribute" && spoken.has(String((at["name"] as { name?: unknown }).name))) {
      const value = at["value"] as Node | null;
      texts(value?.type === "JSXExpressionContainer" ? (value["expression"] as Node) : value);
    }
    Object.values(at).forEach(walk);
  };
  walk(parseSync(path, code).program);
  return found;
}
