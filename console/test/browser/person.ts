import type { Locator, Page } from "playwright-core";

/** Finds the form that the demo asks with; the page's one form. */
export function tripForm(page: Page): Locator {
  return page.getByRole("form", { name: "Plan the trip" });
}

/** Fills in what the demo's form needs, and sends it. */
export async function planTrip(page: Page, name: string): Promise<void> {
  const form = tripForm(page);
  await form.getByRole("textbox", { name: "Name" }).fill(name);
  await form.getByRole("textbox", { name: "E-mail" }).fill("lin@example.com");
  await form.getByRole("button", { name: "Plan it" }).click();
}

/** Waits until the line that tells what a run is doing says this. */
export async function runSays(page: Page, words: string | RegExp): Promise<void> {
  await page.locator("[data-run-bar]").getByText(words).first().waitFor();
}

/** Presses Tab until something has the focus, as a person without a mouse does. */
export async function tabTo(page: Page, target: Locator): Promise<void> {
  await target.waitFor();
  for (let presses = 0; presses < 80; presses++) {
    if (await target.evaluate((element) => element === document.activeElement)) return;
    await page.keyboard.press("Tab");
  }
  throw new Error(`${target.toString()} cannot be reached with Tab`);
}

/** Reads what the agent said, as it stands on the page, one text after another. */
export async function saidBy(page: Page, agent: string): Promise<string> {
  const texts = await page.getByRole("article", { name: agent, exact: true }).locator(".markdown").allInnerTexts();
  return bare(texts.join("\n"));
}

/** Leaves out white space, so that lines may be broken anywhere. */
export function bare(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}
