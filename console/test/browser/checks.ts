import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

interface AxeResult {
  violations: { id: string; help: string; nodes: { html: string; failureSummary?: string }[] }[];
}

/** Returns the violations of WCAG 2.2 AA on a page. */
export async function accessibilityViolations(page: Page): Promise<string[]> {
  // Evaluated, because the content security policy forbids other scripts.
  await page.evaluate(axe);
  const result = await page.evaluate(() => {
    const { axe } = globalThis as unknown as { axe: { run(on: Document, options: object): Promise<AxeResult> } };
    return axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"], resultTypes: ["violations"] });
  });
  return result.violations.map((violation) => `${violation.id} (${violation.help}): ${violation.nodes.map((node) => `${node.html} ${node.failureSummary ?? ""}`).join("\n  ")}`);
}

/** Returns true if a page is wider than the window. */
export function scrollsSideways(page: Page): Promise<boolean> {
  return page.evaluate(() => {
    const main = document.querySelector("main");
    return document.documentElement.scrollWidth > innerWidth || (main !== null && main.scrollWidth > main.clientWidth);
  });
}

/** Returns true if the window scrolls: only the main part should, so that the navigation stays in view. */
export function scrollsVertically(page: Page): Promise<boolean> {
  return page.evaluate(() => document.documentElement.scrollHeight > innerHeight);
}

/** Waits until the page has no loading indicator. */
export async function waitForLoaded(page: Page): Promise<void> {
  await page.waitForSelector("h1");
  await page.waitForFunction(() => ![...document.querySelectorAll("main [role=status] .visually-hidden")].some((indicator) => /^(Loading|加载中)/.test(indicator.textContent ?? "")));
}
