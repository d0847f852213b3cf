import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { collapseWhitespace, planTrip, waitForOperation, textOf, tripForm } from "./actions";
import { startEnvironment, type Environment } from "./environment";

let environment: Environment;

beforeAll(async () => {
  environment = await startEnvironment();
});

afterAll(() => environment.close());

/** Returns the number of the last tick of the endless agent on the page. */
async function lastTick(page: Page): Promise<number> {
  const numbers = (await textOf(page, "endless")).match(/\d+/g) ?? [];
  return Number(numbers.at(-1) ?? 0);
}

async function tickAfter(page: Page, number: number): Promise<void> {
  await page.getByText(new RegExp(`tick ${number + 1}\\b`)).waitFor();
}

/** Stops the run and compares the text of the page with the server's message. */
async function expectCompleteText(page: Page, run: string): Promise<void> {
  await page.getByRole("button", { name: "Stop" }).click();
  await waitForOperation(page, /^Cancelled/);
  const { mainContent } = await environment.client.runs.message(run);
  await expect.poll(() => textOf(page, "endless")).toBe(collapseWhitespace(mainContent));
}

it("a reload during a run shows each event exactly once", async () => {
  const { run_id } = await environment.client.runs.create({ agent: "endless", message: "Keep me company" });
  const page = await environment.open(`/runs/${run_id}`);
  await tickAfter(page, 5);
  const before = await lastTick(page);
  await page.reload();
  await tickAfter(page, before);
  await expectCompleteText(page, run_id);
});

it("a server restart during a run loses no event, and shows the connection status", async () => {
  const { run_id } = await environment.client.runs.create({ agent: "endless", message: "Keep me company" });
  const page = await environment.open(`/runs/${run_id}`);
  await tickAfter(page, 5);
  await environment.server.kill();
  await page.getByRole("status").getByText("Reconnecting…").waitFor();
  const before = await lastTick(page);
  // The content stays visible without a dialog or alert.
  expect(await page.getByRole("dialog").count() + (await page.getByRole("alert").count())).toBe(0);
  await environment.server.restart();
  await page.getByRole("status").getByText("Back online").waitFor();
  await tickAfter(page, before);
  await expectCompleteText(page, run_id);
});

it("a failed answer shows an error at the form, and can be retried", async () => {
  const { run_id } = await environment.client.runs.create({ agent: "demo", message: "What can I do in Hangzhou on Saturday?" });
  const page = await environment.open(`/runs/${run_id}`);
  await tripForm(page).waitFor();
  await environment.server.kill();
  await planTrip(page, "Lin");
  const note = tripForm(page).getByRole("alert");
  await note.getByText("try again when the server is back").waitFor();
  expect(await note.evaluate((alert) => alert.parentElement === document.activeElement)).toBe(true);
  await environment.server.restart();
  await page.getByRole("status").getByText("Back online").waitFor();
  await note.getByRole("button", { name: "Try again" }).click();
  await page.getByRole("form", { name: "Book this trip?" }).waitFor();
  expect(await environment.client.interactions.get(run_id, "trip")).toMatchObject({ answer: { values: { name: "Lin" } } });
});

it("a draft survives a reload and a server restart", async () => {
  const { run_id } = await environment.client.runs.create({ agent: "demo", message: "What can I do in Hangzhou on Saturday?" });
  const page = await environment.open(`/runs/${run_id}`);
  await tripForm(page).getByRole("textbox", { name: "Name" }).fill("Lin");
  await environment.server.kill();
  await page.getByRole("status").getByText("Reconnecting…").waitFor();
  await environment.server.restart();
  await page.getByRole("status").getByText("Back online").waitFor();
  await page.reload();
  const name = tripForm(page).getByRole("textbox", { name: "Name" });
  await name.waitFor();
  expect(await name.inputValue()).toBe("Lin");
  await planTrip(page, "Lin");
  await page.getByRole("form", { name: "Book this trip?" }).waitFor();
});

it("a frozen page resumes where it stopped", async () => {
  const { run_id } = await environment.client.runs.create({ agent: "endless", message: "Keep me company" });
  const page = await environment.open(`/runs/${run_id}`);
  await tickAfter(page, 5);
  const browser = await page.context().newCDPSession(page);
  await page.context().setOffline(true);
  await page.getByRole("status").getByText("Reconnecting…").waitFor();
  const before = await lastTick(page);
  await browser.send("Page.setWebLifecycleState", { state: "frozen" });
  const { counts } = await environment.client.runs.get(run_id);
  await expect.poll(async () => (await environment.client.runs.get(run_id)).counts.events, { timeout: 10_000 }).toBeGreaterThan(counts.events + 100);
  await browser.send("Page.setWebLifecycleState", { state: "active" });
  await page.context().setOffline(false);
  await page.getByRole("status").getByText("Back online").waitFor();
  await tickAfter(page, before);
  await expectCompleteText(page, run_id);
});

it("of two tabs that answer the same form, the second shows the accepted answer", async () => {
  const { run_id } = await environment.client.runs.create({ agent: "demo", message: "What can I do in Hangzhou on Saturday?" });
  const [ada, lin] = [await environment.open(`/runs/${run_id}`), await environment.open(`/runs/${run_id}`)];
  await tripForm(lin).getByRole("textbox", { name: "Name" }).fill("Lin");
  await planTrip(ada, "Ada");
  await lin.getByText(/Somebody else answered while you were filling this in/).waitFor();
  await lin.getByLabel("The answer").getByText("Ada", { exact: true }).waitFor();
  await lin.getByText("What you had filled in").click();
  await lin.getByText("Lin", { exact: true }).waitFor();

  // Both approve at the same time: the second sees the accepted answer, not an error.
  const approvals = [ada, lin].map((page) => page.getByRole("form", { name: "Book this trip?" }));
  await Promise.all(approvals.map((form) => form.waitFor()));
  await Promise.all(approvals.map((form) => form.getByRole("button").first().click({ noWaitAfter: true }).catch(() => undefined)));
  for (const page of [ada, lin]) {
    await waitForOperation(page, "Completed");
    await page.getByText("Approved", { exact: true }).waitFor();
    expect(await page.getByRole("alert").count()).toBe(0);
  }
});
