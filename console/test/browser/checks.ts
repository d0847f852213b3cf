import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

interface AxeResult {
  violations: { id: string; help: string; nodes: { html: string; failureSummary?: string }[] }[];
}

/** Finds what makes a page hard to use for somebody, by the rules of WCAG 2.2 AA. */
export async function accessibilityFaults(page: Page): Promise<string[]> {
  // Evaluated, not added as a script: the content security policy forbids scripts from elsewhere.
  await page.evaluate(axe);
  const result = await page.evaluate(() => {
    const { axe } = globalThis as unknown as { axe: { run(on: Document, options: object): Promise<AxeResult> } };
    return axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"], resultTypes: ["violations"] });
  });
  return result.violations.map((fault) => `${fault.id} (${fault.help}): ${fault.nodes.map((node) => `${node.html} ${node.failureSummary ?? ""}`).join("\n  ")}`);
}

/** Tells whether a page is wider than the window. */
export function scrollsSideways(page: Page): Promise<boolean> {
  return page.evaluate(() => {
    const main = document.querySelector("main");
    return document.documentElement.scrollWidth > innerWidth || (main !== null && main.scrollWidth > main.clientWidth);
  });
}

/** Tells whether the window can be scrolled: only the main part of a page should, or its frame goes out of sight. */
export function scrollsAway(page: Page): Promise<boolean> {
  return page.evaluate(() => document.documentElement.scrollHeight > innerHeight);
}

/** Waits until nothing on the page says that it is still loading. */
export async function settle(page: Page): Promise<void> {
  await page.waitForSelector("h1");
  await page.waitForFunction(() => ![...document.querySelectorAll("main [role=status] .unseen")].some((note) => /^(Loading|加载中)/.test(note.textContent ?? "")));
}
