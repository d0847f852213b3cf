import { afterAll, beforeAll, expect, test } from "vitest";
import { ProblemError, Runwire } from "../src/index.js";
import { Server } from "./server.js";

let server: Server;
let client: Runwire;

beforeAll(async () => {
  server = await Server.start();
  client = new Runwire({ url: server.url });
  const delta = '{"type":"text.delta","message_id":"m","content":"多 1.0","cost":1.50}';
  await client.runs.write("r", ['{"type":"run.started"}', delta, '{"type":"run.completed"}'], { dialect: "runwire" });
});

afterAll(() => server.remove());

test("open returns the response of the server byte for byte, in both framings", async () => {
  for (const [framing, accept] of [["sse", "text/event-stream"], ["ndjson", "application/x-ndjson"]] as const) {
    for (const dialect of ["runwire", "ag-ui", "easyflow-chat", "text"]) {
      const plain = await fetch(`${server.url}/v1/runs/r/events?dialect=${dialect}&after=1`, { headers: { accept } });
      const opened = await client.runs.open("r", { framing, dialect, after: "1" });
      expect(opened.headers.get("content-type")).toBe(plain.headers.get("content-type"));
      expect(await opened.text()).toBe(await plain.text());
    }
  }
});

test("raw frames keep their number format and have cursors", async () => {
  const opened = await client.runs.open("r", { framing: "ndjson", raw: true, cursors: true, follow: false });
  expect(await opened.text()).toContain('{"cursor":"2-0","frame":{"type":"text.delta","message_id":"m","content":"多 1.0","cost":1.50}}');
});

test("opening an unknown run is a ProblemError", async () => {
  await expect(client.runs.open("nobody")).rejects.toBeInstanceOf(ProblemError);
});
