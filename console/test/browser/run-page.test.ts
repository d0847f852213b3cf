import { afterAll, beforeAll, expect, it } from "vitest";
import { planTrip, waitForOperation, tabTo, tripForm } from "./actions";
import { startEnvironment, type Environment } from "./environment";

let environment: Environment;

beforeAll(async () => {
  environment = await startEnvironment();
});

afterAll(() => environment.close());

const runOf = (url: string) => decodeURIComponent(new URL(url).pathname.split("/").at(-1) ?? "");

it("a run is started, its form and approval are answered, and it completes", async () => {
  const page = await environment.open("/agents/demo");
  await page.getByRole("button", { name: "What can I do in Hangzhou on Saturday?" }).click();
  await page.getByRole("button", { name: "Start", exact: true }).click();
  await page.waitForURL("**/runs/*");

  // Before the interaction: thinking, parallel calls, a table, a chart, a recovered error.
  await tripForm(page).waitFor();
  await waitForOperation(page, "Waiting for a person: Plan the trip");
  await page.getByRole("button", { name: /^Thought for/ }).first().waitFor();
  await page.getByRole("button", { name: /weather_forecast/ }).waitFor();
  expect(await page.getByRole("button", { name: /find_places/ }).count()).toBe(2);
  await page.getByRole("table").first().waitFor();
  await page.getByRole("img", { name: /Hangzhou.*The same numbers are in the table/ }).waitFor();
  await page.getByText("The places service did not answer within 2 s; trying once more.").first().waitFor();

  // An invalid answer changes nothing, and shows the errors.
  await tripForm(page).getByRole("button", { name: "Plan it" }).click();
  await page.getByRole("alert").getByText("2 fields have errors").waitFor();
  expect((await environment.client.runs.get(runOf(page.url()))).status).toBe("suspended");

  await planTrip(page, "Lin");
  const approval = page.getByRole("form", { name: "Book this trip?" });
  await approval.getByText("lin@example.com").waitFor();
  await approval.getByRole("button").first().click();
  await waitForOperation(page, "Completed");
  expect(await page.getByRole("form", { name: /Plan the trip|Book this trip/ }).count()).toBe(0);
  await page.getByText("Approved", { exact: true }).waitFor();

  const run = await environment.client.runs.get(runOf(page.url()));
  expect(run.status).toBe("completed");
  const message = await environment.client.runs.message(run.run_id);
  // Markdown syntax is not rendered, so only letters and digits are compared.
  const alphanumeric = (text: string) => text.replace(/^\d+\. /gm, "").replace(/[^\p{Letter}\p{Number}]+/gu, "");
  const texts = await page.getByRole("article", { name: "demo", exact: true }).locator(".markdown").allInnerTexts();
  expect(alphanumeric(texts.join(""))).toBe(alphanumeric(message.mainContent));
});

it("a run can be started and answered with the keyboard", async () => {
  const page = await environment.open("/runs");
  await page.keyboard.press("g");
  await page.keyboard.press("a");
  await page.waitForURL("**/agents");
  await tabTo(page, page.getByRole("link", { name: "Everything at once" }));
  await page.keyboard.press("Enter");
  await page.waitForURL("**/agents/demo");
  await tabTo(page, page.getByLabel("Message"));
  await page.keyboard.type("What can I do in Hangzhou on Saturday?");
  await tabTo(page, page.getByRole("button", { name: "Start", exact: true }));
  await page.keyboard.press("Enter");
  await page.waitForURL("**/runs/*");

  const name = tripForm(page).getByRole("textbox", { name: "Name" });
  await name.waitFor();
  await page.keyboard.press("a");
  expect(await name.evaluate((field) => field === document.activeElement)).toBe(true);
  await page.keyboard.type("Lin");
  await page.keyboard.press("Tab");
  await page.keyboard.type("lin@example.com");
  await tabTo(page, tripForm(page).getByRole("button", { name: "Plan it" }));
  await page.keyboard.press("Enter");

  const approval = page.getByRole("form", { name: "Book this trip?" });
  await tabTo(page, approval.getByRole("button").first());
  await page.keyboard.press("Enter");
  await waitForOperation(page, "Completed");
  expect((await environment.client.runs.get(runOf(page.url()))).status).toBe("completed");
});

it("a failed run shows its error, and is retried as a new run in the same thread", async () => {
  const first = await environment.client.runs.create({ agent: "failing", message: "Export the report" });
  const page = await environment.open(`/runs/${first.run_id}`);
  await waitForOperation(page, /^Failed: The report has \d+ pages/);
  const failure = page.getByRole("region", { name: "The run failed" });
  await failure.getByText("export_quota_exceeded").waitFor();
  await failure.getByRole("button", { name: "Try again" }).click();
  await page.waitForURL((url) => url.pathname !== `/runs/${first.run_id}`);
  await waitForOperation(page, /^Failed: The report has \d+ pages/);
  const second = await environment.client.runs.get(runOf(page.url()));
  expect([second.thread_id, second.agent, second.message]).toEqual([first.thread_id, "failing", "Export the report"]);
});

it("a run is stopped from its page", async () => {
  const run = await environment.client.runs.create({ agent: "endless", message: "Keep me company" });
  const page = await environment.open(`/runs/${run.run_id}`);
  await page.getByText(/tick 3\b/).waitFor();
  await page.getByRole("button", { name: "Stop" }).click();
  await waitForOperation(page, /^Cancelled/);
  expect((await environment.client.runs.get(run.run_id)).status).toBe("cancelled");
  expect(await page.getByRole("button", { name: "Stop" }).count()).toBe(0);
});

it("the composer starts the next run of the thread", async () => {
  await environment.client.runs.write("first", [{ type: "run_start", message: "Say hello" }, { reply: "Hello." }], { dialect: "loom", thread: "talk", end: true });
  const page = await environment.open("/runs/first");
  await page.getByText("Hello.").waitFor();
  await page.getByRole("combobox", { name: "Agent" }).selectOption({ label: "A run that fails" });
  await page.getByRole("textbox", { name: "Message" }).fill("Export the report");
  await page.keyboard.press("Enter");
  await page.waitForURL((url) => url.pathname !== "/runs/first");
  await waitForOperation(page, /^Failed/);
  const { runs } = await environment.client.runs.list({ thread: "talk" });
  expect(runs.map((run) => run.message)).toEqual(["Export the report", "Say hello"]);
});
