import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, it } from "vitest";
import { setStage, type Stage } from "./stage";

let stage: Stage;

beforeAll(async () => {
  stage = await setStage();
  for (const agent of ["thought-tree", "thought-graph"]) await stage.client.runs.create({ run_id: agent, agent, message: "4 6 7 9" });
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
  await stage.client.runs.write("plan", frames, { dialect: "runwire" });
});

afterAll(() => stage.close());

it("a tree of thoughts is walked with the arrow keys, and a thought is opened with Enter", async () => {
  const page = await stage.open("/runs/thought-tree/thoughts");
  const focused = page.locator("[role=treeitem]:focus");
  await page.getByRole("treeitem", { name: /score 1\b/ }).first().waitFor();
  await page.getByRole("treeitem", { name: "Start" }).focus();
  await page.keyboard.press("ArrowRight");
  expect(await focused.getAttribute("aria-level")).toBe("2");
  expect(await focused.textContent()).toContain("Followed");
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
  expect(await page.getByRole("treeitem", { name: /Gone back from/ }).count()).toBeGreaterThan(0);
});

it("a graph of thoughts shows what failed and what was added around it", async () => {
  const page = await stage.open("/runs/thought-graph/thoughts");
  await page.getByText("6 of 7 nodes done").waitFor();
  await page.getByRole("button", { name: /^travel Failed, added 2 nodes/ }).click();
  const panel = page.getByRole("complementary", { name: "Details" });
  await panel.getByText("did not answer within 3 s").waitFor();
  await panel.getByRole("button", { name: "travel.rail" }).click();
  await panel.getByRole("heading", { name: "travel.rail" }).waitFor();
});

it("differences between any two states are told in words", async () => {
  const page = await stage.open("/runs/plan/state");
  const rows = page.getByRole("table").getByRole("row");
  await expect.poll(() => rows.allTextContents()).toEqual(["KindPathBeforeAfter", '~ Changedcity"Lisbon""Porto"', '+ Addeddays[0]"Thursday"']);
  await page.getByLabel("Compare with").selectOption("Nothing (the start)");
  await expect.poll(async () => (await rows.allTextContents())[1]).toContain("+ AddedThe whole");
  await page.getByRole("button", { name: /Snapshot/ }).click();
  await page.getByRole("heading", { name: "State at 2" }).waitFor();
});

it("tokens and time are told by step, by tool and by model call", async () => {
  const page = await stage.open("/runs/plan/usage");
  await page.getByRole("group", { name: "By step" }).getByRole("row", { name: /research/ }).getByText("1,290").waitFor();
  await page.getByRole("group", { name: "By tool" }).getByRole("row", { name: /look_up/ }).waitFor();
  expect(await page.getByRole("group", { name: "By model call" }).getByRole("row").last().innerText()).toMatch(/1,200\s+800\s+90\s+1,290/);
  await page.getByRole("group", { name: "Where the time went" }).getByRole("row", { name: /Tool look_up.*Failed/ }).waitFor();
});

it("an event is shown in another dialect, and stays in it for the next one", async () => {
  const page = await stage.open("/runs/plan/events");
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

it("a stream is taken along as a file", async () => {
  const page = await stage.open("/runs/plan/events");
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "NDJSON" }).click()]);
  expect(download.suggestedFilename()).toBe("plan.runwire.ndjson");
  const plain = await fetch(`${stage.url}/v1/runs/plan/events?follow=false`, { headers: { accept: "application/x-ndjson" } });
  expect(readFileSync(await download.path(), "utf8")).toBe(await plain.text());
});

it("a server that is killed in the middle costs the wire no frame, in any framing", async () => {
  await stage.client.runs.write("live", [{ type: "run.started" }, { type: "text.delta", message_id: "m", content: "first" }], { dialect: "runwire" });
  const framings = ["sse", "ndjson", "websocket"];
  const open = await Promise.all(framings.map((framing) => stage.open(`/runs/live/events?view=wire&dialect=agio&framing=${framing}`)));
  for (const page of open) await page.getByRole("option").last().getByText("first").waitFor();
  await stage.server.kill();
  await stage.server.restart();
  await stage.client.runs.write("live", [{ type: "text.delta", message_id: "m", content: "second" }, { type: "run.completed" }], { dialect: "runwire" });
  const { frames } = await stage.client.runs.page("live", { dialect: "agio" });
  for (const page of open) await page.getByText(`${frames.length} frames`).waitFor();
});
