import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { DIALECTS } from "@runwire/client";
import { startEnvironment, type Environment } from "./environment";

let environment: Environment;

beforeAll(async () => {
  environment = await startEnvironment();
  const frames = [
    { type: "run.started", message: "Greet me" },
    { type: "thinking.delta", message_id: "t", content: "In Chinese, too." },
    { type: "text.delta", message_id: "m", content: "Hello, " },
    { type: "text.delta", message_id: "m", content: "你好" },
    { type: "tool.called", call_id: "c", name: "wave", arguments: { times: 2 } },
    { type: "tool.finished", call_id: "c", name: "wave", status: "success", result: "waved" },
    { type: "run.completed" },
  ];
  await environment.client.runs.write("greeting", frames, { dialect: "runwire" });
});

afterAll(() => environment.close());

/** Returns the lines of the server's response. */
async function responseLines(dialect: string, accept: string): Promise<string[]> {
  const response = await fetch(`${environment.url}/v1/runs/greeting/events?dialect=${dialect}`, { headers: { accept } });
  return (await response.text()).split("\n").filter((line) => line !== "");
}

/** Returns the lines of the first dialect on the page. */
async function shownLines(page: Page): Promise<string[]> {
  const rows = page.getByRole("listbox").getByRole("option");
  const lines = await rows.evaluateAll((found) => found.flatMap((row) => [...(row.children[1]?.children ?? [])].map((line) => line.textContent ?? "")));
  return lines.filter((line) => line !== "" && line !== "—" && line !== "This dialect has no frame for it.");
}

it("every dialect is shown as the server sends it, byte for byte", async () => {
  const page = await environment.open("/runs/greeting/events", { height: 2400 });
  await page.getByRole("button", { name: "On the wire" }).click();
  for (const dialect of DIALECTS) {
    await page.getByRole("group", { name: "Dialect" }).getByRole("button", { name: dialect, exact: true }).click();
    await page.getByRole("heading", { name: dialect, exact: true }).waitFor();
    const expected = await responseLines(dialect, "text/event-stream");
    await expect.poll(() => shownLines(page), { message: dialect }).toEqual(expected);
  }
});

it("framings and a second dialect can be selected", async () => {
  const page = await environment.open("/runs/greeting/events?view=wire&dialect=ag-ui", { height: 2400 });
  await page.getByRole("button", { name: "NDJSON" }).first().click();
  const lines = await responseLines("ag-ui", "application/x-ndjson");
  await expect.poll(() => shownLines(page)).toEqual(lines);
  await page.getByRole("button", { name: "WebSocket" }).click();
  await expect.poll(async () => (await shownLines(page)).filter((line) => line.startsWith('{"op":"frame"')).length).toBe(lines.length);
  await page.getByRole("button", { name: "SSE" }).click();
  await page.getByLabel("Second dialect").selectOption("loom");
  await page.getByRole("heading", { name: "loom", exact: true }).waitFor();
  await page.waitForURL("**/events?*beside=loom*");
  // Both sides of a record are in one row.
  const row = page.getByRole("listbox").getByRole("option").filter({ hasText: "TEXT_MESSAGE_CONTENT" }).first();
  await row.getByText("message_delta").or(row.getByText("run_stream")).or(row.getByText("Hello, ")).first().waitFor();
});

it("events can be searched, and their stored frame is shown", async () => {
  const page = await environment.open("/runs/greeting/events");
  await page.getByText("text.delta").first().waitFor();
  await page.getByRole("searchbox").fill("你好");
  await page.getByText(/^1 of \d+ events$/).waitFor();
  await page.getByText("text.delta").first().click();
  await page.getByText(/"你好"|你好/).last().waitFor();
});
