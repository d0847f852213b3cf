import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { bare, planTrip, runSays, saidBy, tripForm } from "./person";
import { setStage, type Stage } from "./stage";

let stage: Stage;

beforeAll(async () => {
  stage = await setStage();
});

afterAll(() => stage.close());

/** The number of the last tick that the endless agent has counted on the page. */
async function lastTick(page: Page): Promise<number> {
  const numbers = (await saidBy(page, "endless")).match(/\d+/g) ?? [];
  return Number(numbers.at(-1) ?? 0);
}

async function tickAfter(page: Page, number: number): Promise<void> {
  await page.getByText(new RegExp(`tick ${number + 1}\\b`)).waitFor();
}

/** Stops the run, and compares what stands on the page with what the server has gathered. */
async function nothingTwiceNothingMissing(page: Page, run: string): Promise<void> {
  await page.getByRole("button", { name: "Stop" }).click();
  await runSays(page, /^Cancelled/);
  const { mainContent } = await stage.client.runs.message(run);
  await expect.poll(() => saidBy(page, "endless")).toBe(bare(mainContent));
}

it("a reload in the middle of a run shows nothing twice, and nothing is missing", async () => {
  const { run_id } = await stage.client.runs.create({ agent: "endless", message: "Keep me company" });
  const page = await stage.open(`/runs/${run_id}`);
  await tickAfter(page, 5);
  const before = await lastTick(page);
  await page.reload();
  await tickAfter(page, before);
  await nothingTwiceNothingMissing(page, run_id);
});

it("a server that is killed and started again in the middle of a run costs no event, and is mentioned quietly", async () => {
  const { run_id } = await stage.client.runs.create({ agent: "endless", message: "Keep me company" });
  const page = await stage.open(`/runs/${run_id}`);
  await tickAfter(page, 5);
  await stage.server.kill();
  await page.getByRole("status").getByText("Reconnecting…").waitFor();
  const before = await lastTick(page);
  // What was read stays in sight, and nothing covers it.
  expect(await page.getByRole("dialog").count() + (await page.getByRole("alert").count())).toBe(0);
  await stage.server.restart();
  await page.getByRole("status").getByText("Back online").waitFor();
  await tickAfter(page, before);
  await nothingTwiceNothingMissing(page, run_id);
});

it("an answer that could not be sent says so where the person is, and is sent again at a press", async () => {
  const { run_id } = await stage.client.runs.create({ agent: "demo", message: "What can I do in Hangzhou on Saturday?" });
  const page = await stage.open(`/runs/${run_id}`);
  await tripForm(page).waitFor();
  await stage.server.kill();
  await planTrip(page, "Lin");
  const note = tripForm(page).getByRole("alert");
  await note.getByText("try again when the server is back").waitFor();
  expect(await note.evaluate((alert) => alert.parentElement === document.activeElement)).toBe(true);
  await stage.server.restart();
  await page.getByRole("status").getByText("Back online").waitFor();
  await note.getByRole("button", { name: "Try again" }).click();
  await page.getByRole("form", { name: "Book this trip?" }).waitFor();
  expect(await stage.client.interactions.get(run_id, "trip")).toMatchObject({ answer: { values: { name: "Lin" } } });
});

it("a form that is half filled in survives a reload and a killed server", async () => {
  const { run_id } = await stage.client.runs.create({ agent: "demo", message: "What can I do in Hangzhou on Saturday?" });
  const page = await stage.open(`/runs/${run_id}`);
  await tripForm(page).getByRole("textbox", { name: "Name" }).fill("Lin");
  await stage.server.kill();
  await page.getByRole("status").getByText("Reconnecting…").waitFor();
  await stage.server.restart();
  await page.getByRole("status").getByText("Back online").waitFor();
  await page.reload();
  const name = tripForm(page).getByRole("textbox", { name: "Name" });
  await name.waitFor();
  expect(await name.inputValue()).toBe("Lin");
  await planTrip(page, "Lin");
  await page.getByRole("form", { name: "Book this trip?" }).waitFor();
});

it("a page that slept goes on where it was", async () => {
  const { run_id } = await stage.client.runs.create({ agent: "endless", message: "Keep me company" });
  const page = await stage.open(`/runs/${run_id}`);
  await tickAfter(page, 5);
  const browser = await page.context().newCDPSession(page);
  await page.context().setOffline(true);
  await page.getByRole("status").getByText("Reconnecting…").waitFor();
  const before = await lastTick(page);
  await browser.send("Page.setWebLifecycleState", { state: "frozen" });
  const { counts } = await stage.client.runs.get(run_id);
  await expect.poll(async () => (await stage.client.runs.get(run_id)).counts.events, { timeout: 10_000 }).toBeGreaterThan(counts.events + 100);
  await browser.send("Page.setWebLifecycleState", { state: "active" });
  await page.context().setOffline(false);
  await page.getByRole("status").getByText("Back online").waitFor();
  await tickAfter(page, before);
  await nothingTwiceNothingMissing(page, run_id);
});

it("of two tabs that answer the same form one wins, and the other shows the answer that won", async () => {
  const { run_id } = await stage.client.runs.create({ agent: "demo", message: "What can I do in Hangzhou on Saturday?" });
  const [ada, lin] = [await stage.open(`/runs/${run_id}`), await stage.open(`/runs/${run_id}`)];
  await tripForm(lin).getByRole("textbox", { name: "Name" }).fill("Lin");
  await planTrip(ada, "Ada");
  await lin.getByText(/Somebody else answered while you were filling this in/).waitFor();
  await lin.getByLabel("The answer").getByText("Ada", { exact: true }).waitFor();
  await lin.getByText("What you had filled in").click();
  await lin.getByText("Lin", { exact: true }).waitFor();

  // The approval is given at the same moment: whoever loses sees what counts, not an error.
  const approvals = [ada, lin].map((page) => page.getByRole("form", { name: "Book this trip?" }));
  await Promise.all(approvals.map((form) => form.waitFor()));
  await Promise.all(approvals.map((form) => form.getByRole("button").first().click({ noWaitAfter: true }).catch(() => undefined)));
  for (const page of [ada, lin]) {
    await runSays(page, "Completed");
    await page.getByText("Approved", { exact: true }).waitFor();
    expect(await page.getByRole("alert").count()).toBe(0);
  }
});
