import type { Locator, Page } from "playwright-core";

/** Returns the form of the demo agent. */
export function tripForm(page: Page): Locator {
  return page.getByRole("form", { name: "Plan the trip" });
}

/** Fills in and submits the form of the demo agent. */
export async function planTrip(page: Page, name: string): Promise<void> {
  const form = tripForm(page);
  await form.getByRole("textbox", { name: "Name" }).fill(name);
  await form.getByRole("textbox", { name: "E-mail" }).fill("lin@example.com");
  await form.getByRole("button", { name: "Plan it" }).click();
}

/** Waits until the operation line of a run has a text. */
export async function waitForOperation(page: Page, text: string | RegExp): Promise<void> {
  await page.locator("[data-run-bar]").getByText(text).first().waitFor();
}

/** Presses Tab until an element has the focus. */
export async function tabTo(page: Page, target: Locator): Promise<void> {
  await target.waitFor();
  for (let presses = 0; presses < 80; presses++) {
    if (await target.evaluate((element) => element === document.activeElement)) return;
    await page.keyboard.press("Tab");
  }
  throw new Error(`${target.toString()} cannot be reached with Tab`);
}

/** Returns the texts of an agent on the page. */
export async function textOf(page: Page, agent: string): Promise<string> {
  const texts = await page.getByRole("article", { name: agent, exact: true }).locator(".markdown").allInnerTexts();
  return collapseWhitespace(texts.join("\n"));
}

/** Collapses white space, so that line breaks do not matter. */
export function collapseWhitespace(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}
