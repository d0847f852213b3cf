import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startEnvironment, type Environment } from "./environment";

let environment: Environment;

beforeAll(async () => {
  environment = await startEnvironment();
  for (const agent of ["thought-tree", "thought-graph"]) await environment.client.runs.create({ run_id: agent, agent, message: "4 6 7 9" });
  const frames = [
    { type: "run.started", message: "Keep a plan" },
    { type: "state.snapshot", state: { city: "Lisbon", days: ["Friday"] } },
    { type: "step.started", name: "research", step_id: "research.1" },
    { type: "usage", prompt_tokens: 1200, completion_tokens: 90, total_tokens: 1290, step_id: "research.1", extra: { cached_tokens: 800 } },
    { type: "tool.called", call_id: "c", name: "look_up", arguments: { page: 1 } },
    { type: "tool.finished", call_id: "c", name: "look_up", status: "failure", error: { message: "no such page" } },
    { type: "state.patched", patch: [{ op: "add", path: "/days/0", value: "Thursday" }, { op: "replace", path: "/city", value: "Porto" }] },
    { type: "step.finished", name: "research", step_id: "research.1" },
    { type: "run.completed" },
  ];
  await environment.client.runs.write("plan", frames, { dialect: "runwire" });
});

afterAll(() => environment.close());

it("a tree of thoughts is navigated with arrow keys, and Enter opens a thought", async () => {
  const page = await environment.open("/runs/thought-tree/thoughts");
  const focused = page.locator("[role=treeitem]:focus");
  await page.getByRole("treeitem", { name: /score 1\b/ }).first().waitFor();
  await page.getByRole("treeitem", { name: "Start" }).focus();
  await page.keyboard.press("ArrowRight");
  expect(await focused.getAttribute("aria-level")).toBe("2");
  expect(await focused.textContent()).toContain("Chosen");
  await page.keyboard.press("ArrowDown");
  expect(await focused.getAttribute("aria-level")).toBe("2");
  await page.keyboard.press("End");
  await page.keyboard.press("Enter");
  const panel = page.getByRole("complementary", { name: "Details" });
  await panel.getByText("On the chosen path").waitFor();
  await page.keyboard.press("Escape");
  await panel.waitFor({ state: "detached" });
  await page.keyboard.press("Home");
  expect(await focused.textContent()).toContain("Start");
  expect(await page.getByRole("treeitem", { name: /Abandoned/ }).count()).toBeGreaterThan(0);
});

it("a graph of thoughts shows failed nodes and their expansions", async () => {
  const page = await environment.open("/runs/thought-graph/thoughts");
  await page.getByText("6 of 7 nodes completed").waitFor();
  await page.getByRole("button", { name: /^travel Failed, added 2 nodes/ }).click();
  const panel = page.getByRole("complementary", { name: "Details" });
  await panel.getByText("did not answer within 3 s").waitFor();
  await panel.getByRole("button", { name: "travel.rail" }).click();
  await panel.getByRole("heading", { name: "travel.rail" }).waitFor();
});

it("differences between two states are shown as text", async () => {
  const page = await environment.open("/runs/plan/state");
  const rows = page.getByRole("table").getByRole("row");
  await expect.poll(() => rows.allTextContents()).toEqual(["KindPathBeforeAfter", '~ Changedcity"Lisbon""Porto"', '+ Addeddays[0]"Thursday"']);
  await page.getByLabel("Compare with").selectOption("Empty (start)");
  await expect.poll(async () => (await rows.allTextContents())[1]).toContain("+ AddedWhole state");
  await page.getByRole("button", { name: /Snapshot/ }).click();
  await page.getByRole("heading", { name: "State at 2" }).waitFor();
});

it("tokens and time are shown by step, tool and model call", async () => {
  const page = await environment.open("/runs/plan/usage");
  await page.getByRole("group", { name: "By step" }).getByRole("row", { name: /research/ }).getByText("1,290").waitFor();
  await page.getByRole("group", { name: "By tool" }).getByRole("row", { name: /look_up/ }).waitFor();
  expect(await page.getByRole("group", { name: "By model call" }).getByRole("row").last().innerText()).toMatch(/1,200\s+800\s+90\s+1,290/);
  await page.getByRole("group", { name: "Where the time went" }).getByRole("row", { name: /Tool look_up.*Failed/ }).waitFor();
});

it("the selected dialect of an event is kept for the next event", async () => {
  const page = await environment.open("/runs/plan/events");
  await page.getByRole("option").first().waitFor();
  for (const key of ["j", "j", "Enter"]) await page.keyboard.press(key);
  const details = page.getByRole("complementary", { name: "Details" });
  await details.getByRole("heading", { name: "state.snapshot" }).waitFor();
  await details.getByLabel("Show as").selectOption("ag-ui");
  await details.getByText("STATE_SNAPSHOT").waitFor();
  await page.getByRole("listbox").focus();
  await page.keyboard.press("ArrowDown");
  await details.getByText("STEP_STARTED").waitFor();
  await details.getByLabel("Show as").selectOption("raw");
  await details.getByText('{"type":"step.started","name":"research","step_id":"research.1"}').waitFor();
});

it("a stream is downloaded as a file", async () => {
  const page = await environment.open("/runs/plan/events");
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "NDJSON" }).click()]);
  expect(download.suggestedFilename()).toBe("plan.runwire.ndjson");
  const plain = await fetch(`${environment.url}/v1/runs/plan/events?follow=false`, { headers: { accept: "application/x-ndjson" } });
  expect(readFileSync(await download.path(), "utf8")).toBe(await plain.text());
});

it("a server restart loses no frame on the wire, in any framing", async () => {
  await environment.client.runs.write("live", [{ type: "run.started" }, { type: "text.delta", message_id: "m", content: "first" }], { dialect: "runwire" });
  const framings = ["sse", "ndjson", "websocket"];
  const open = await Promise.all(framings.map((framing) => environment.open(`/runs/live/events?view=wire&dialect=agio&framing=${framing}`)));
  for (const page of open) await page.getByRole("option").last().getByText("first").waitFor();
  await environment.server.kill();
  await environment.server.restart();
  await environment.client.runs.write("live", [{ type: "text.delta", message_id: "m", content: "second" }, { type: "run.completed" }], { dialect: "runwire" });
  const { frames } = await environment.client.runs.page("live", { dialect: "agio" });
  for (const page of open) await page.getByText(`${frames.length} frames`).waitFor();
});
