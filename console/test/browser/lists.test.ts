import { afterAll, beforeAll, expect, it } from "vitest";
import { startEnvironment, type Environment } from "./environment";

let environment: Environment;

beforeAll(async () => {
  environment = await startEnvironment();
  await environment.client.runs.write("greeting", [{ type: "run_start", message: "Say hello" }, { reply: "**加粗：**文字" }], {
    dialect: "loom",
    thread: "greetings",
    end: true,
  });
  await environment.client.runs.create({ run_id: "broken", agent: "failing", message: "Count the orders" });
  await environment.client.runs.create({ run_id: "trip", agent: "demo", message: "Plan a trip to Hangzhou" });
});

afterAll(() => environment.close());

it("a new run appears in the list, and its status is updated", async () => {
  const page = await environment.open("/runs");
  await page.getByText("Say hello").waitFor();
  await environment.client.runs.create({ run_id: "late", agent: "endless", message: "Watch the queue" });
  const row = page.getByRole("row").filter({ hasText: "Watch the queue" });
  await row.getByText("Running").waitFor();
  await environment.client.runs.cancel("late");
  await row.getByText("Cancelled").waitFor();
});

it("filters are in the query, survive a reload, and can be cleared", async () => {
  const page = await environment.open("/runs");
  await page.getByRole("row").filter({ hasText: "Count the orders" }).getByText("Failed").waitFor();
  await page.getByRole("button", { name: "Failed" }).click();
  await page.getByText("Say hello").waitFor({ state: "detached" });
  await page.getByRole("searchbox").fill("brok");
  await page.waitForURL("**/runs?status=failed&find=brok");
  await page.reload();
  await page.getByText("Count the orders").waitFor();
  expect(await page.getByRole("searchbox").inputValue()).toBe("brok");
  await page.getByRole("searchbox").fill("nothing-begins-so");
  await page.getByRole("button", { name: "Clear filters" }).click();
  await page.getByText("Say hello").waitFor();
  expect(new URL(page.url()).search).toBe("");
  expect(await page.getByRole("searchbox").inputValue()).toBe("");
});

it("keyboard shortcuts navigate lists and pages", async () => {
  const page = await environment.open("/runs");
  await page.getByText("Say hello").waitFor();
  const focused = () => page.evaluate(() => (document.activeElement as HTMLElement).dataset["row"]);
  await page.keyboard.press("j");
  const first = await focused();
  await page.keyboard.press("j");
  const second = await focused();
  expect(first).toBeTruthy();
  expect(second).not.toBe(first);
  await page.keyboard.press("k");
  expect(await focused()).toBe(first);
  await page.keyboard.press("Enter");
  await page.waitForURL(`**/runs/${first}`);
  await page.goBack();
  await page.keyboard.press("/");
  expect(await page.evaluate(() => document.activeElement?.getAttribute("type"))).toBe("search");
  await page.keyboard.type("?");
  expect(await page.locator("dialog[open]").count()).toBe(0);
  await page.keyboard.press("Escape");
  await page.keyboard.press("?");
  await page.locator("dialog[open]").waitFor();
  await page.keyboard.press("Escape");
  await page.locator("dialog[open]").waitFor({ state: "detached" });
  await page.keyboard.press("g");
  await page.keyboard.press("a");
  await page.waitForURL("**/agents");
  await page.waitForFunction(() => document.activeElement?.tagName === "H1");
});

it("language and theme can be changed, and are stored", async () => {
  const page = await environment.open("/agents");
  await page.getByRole("button", { name: "Language and theme" }).click();
  await page.getByRole("button", { name: "Dark" }).click();
  await page.getByRole("button", { name: "简体中文" }).click();
  await page.getByRole("heading", { name: "智能体", level: 1 }).waitFor();
  await page.reload();
  await page.getByRole("heading", { name: "智能体", level: 1 }).waitFor();
  expect(await page.evaluate(() => [document.documentElement.lang, getComputedStyle(document.documentElement).colorScheme])).toEqual(["zh-CN", "dark"]);
});

it("an agent is started from its page", async () => {
  const page = await environment.open("/agents/failing");
  await page.getByLabel("Message").fill("Import the orders");
  await page.getByText("Input and thread").click();
  await page.getByLabel("Input (JSON)").fill("{oops");
  expect(await page.getByRole("button", { name: "Start", exact: true }).isDisabled()).toBe(true);
  await page.getByLabel("Input (JSON)").fill('{"size": 3}');
  await page.getByLabel("Thread id").fill("orders");
  await page.getByLabel("Message").focus();
  await page.keyboard.press("Control+Enter");
  await page.waitForURL("**/runs/*");
  const { runs } = await environment.client.runs.list({ thread: "orders" });
  expect(runs.map((run) => [run.agent, run.message])).toEqual([["failing", "Import the orders"]]);
});

it("the inbox counts open interactions, and keeps one that another person answers", async () => {
  const page = await environment.open("/inbox");
  await page.getByRole("heading", { name: "Plan the trip" }).waitFor();
  await page.waitForFunction(() => document.title.startsWith("(1) "));
  await page.getByLabel("Name", { exact: false }).first().fill("Ada");
  await environment.client.interactions.answer("trip", "trip", { decision: "cancelled" });
  await page.waitForFunction(() => !document.title.startsWith("("));
  await page.getByRole("heading", { name: "Plan the trip" }).waitFor();
});

it("a server restart shows the connection status, and the list continues", async () => {
  const page = await environment.open("/runs");
  await page.getByText("Say hello").waitFor();
  await environment.server.kill();
  await page.getByText("Reconnecting…").waitFor();
  expect(await page.getByText("Say hello").isVisible()).toBe(true);
  await environment.server.restart();
  await page.getByText("Back online").waitFor();
  await environment.client.runs.create({ run_id: "after", agent: "failing", message: "After the restart" });
  await page.getByText("After the restart").waitFor();
});

it("a thread is deleted after a confirmation", async () => {
  await environment.client.runs.write("gone", [{ type: "run_start", message: "Forget me" }, { reply: "Yes." }], { dialect: "loom", thread: "gone", end: true });
  const page = await environment.open("/threads/gone");
  await page.getByRole("heading", { name: "Forget me" }).waitFor();
  await page.getByRole("button", { name: "Delete" }).click();
  await page.locator("dialog[open]").getByRole("button", { name: "Delete" }).click();
  await page.waitForURL("**/threads");
  await expect(environment.client.threads.get("gone")).rejects.toMatchObject({ status: 410 });
});
