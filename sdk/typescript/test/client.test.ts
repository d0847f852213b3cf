import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { isUnknown, NetworkError, ProblemError, ProtocolError, Runwire, type RunwireEvent } from "../src/index.js";
import { Server, until } from "./server.js";

let server: Server;
let client: Runwire;

beforeAll(async () => {
  server = await Server.start();
  client = new Runwire({ url: `${server.url}/` });
});

afterAll(async () => {
  await server.remove();
});

test("health and agents of the server are returned", async () => {
  expect(await client.health()).toMatchObject({ status: "ok" });
  const { agents } = await client.agents.list();
  expect(agents.map((agent) => agent.name)).toContain("demo");
});

test("runs are created, fetched, listed and iterated", async () => {
  const ids = Array.from({ length: 5 }, (_, at) => `walk/${at} 中`);
  for (const run_id of ids) expect(await client.runs.create({ run_id, thread_id: run_id, message: "hi" })).toMatchObject({ run_id, status: "pending" });
  expect(await client.runs.get("walk/0 中")).toMatchObject({ thread_id: "walk/0 中", message: "hi" });
  const page = await client.runs.list({ prefix: "walk/", limit: 2, status: ["pending", "running"] });
  expect(page.runs.map((run) => run.run_id)).toEqual(["walk/4 中", "walk/3 中"]);
  expect(page.next).not.toBeNull();
  const listed: string[] = [];
  for await (const run of client.runs.all({ prefix: "walk/", limit: 2 })) listed.push(run.run_id);
  expect(listed).toEqual(ids.toReversed());
  expect((await client.runs.list({ prefix: "walk/", status: "completed" })).runs).toEqual([]);
});

test("a repeated write is deduplicated, and an older epoch is fenced", async () => {
  const frames = [{ type: "text.started", message_id: "m" }, '{"type":"text.delta","message_id":"m","content":"你好"}'];
  const options = { dialect: "runwire", producer: "p", epoch: 1, seq: 0 };
  expect(await client.runs.write("once", frames, options)).toMatchObject({ accepted: 2, duplicates: 0 });
  expect(await client.runs.write("once", frames, options)).toMatchObject({ accepted: 0, duplicates: 2 });
  expect(await client.runs.producer("once", "p")).toMatchObject({ epoch: 1, next: 2 });
  await expect(client.runs.write("once", frames, { ...options, epoch: 0 })).rejects.toMatchObject({ status: 403, code: "producer_fenced" });
  await expect(client.runs.write("once", frames, { ...options, seq: 9 })).rejects.toMatchObject({ code: "producer_gap", problem: { expected: 2 } });
  expect(await client.runs.heartbeat("once")).toEqual({ status: "running", cancel_requested: false });
  expect(await client.runs.message("once")).toMatchObject({ mainContent: "你好", isStreaming: true });
  await client.runs.cancel("once", "enough");
  expect(await client.runs.heartbeat("once")).toMatchObject({ cancel_requested: true });
});

test("a page returns frames as they were sent, or as events", async () => {
  await client.runs.write("raw", [{ type: "token", content: "a" }, { type: "done" }], { dialect: "streaming-engine" });
  const page = await client.runs.page("raw", { raw: true });
  expect(page.frames.map(({ frame }) => frame)).toContainEqual({ type: "token", content: "a" });
  const first = await client.runs.page<RunwireEvent>("raw", { limit: 1 });
  expect(first.frames[0]?.frame.type).toBe("run.started");
  const rest = await client.runs.page<RunwireEvent>("raw", { after: first.next ?? "" });
  expect(rest.frames.map(({ frame }) => frame.type)).toEqual(["text.started", "text.delta", "text.finished", "run.completed"]);
  expect(rest.next).toBeNull();
  const response = await client.runs.open("raw", { framing: "ndjson" });
  expect((await response.text()).trim().split("\n")).toHaveLength(5);
});

test("threads are created, written, fetched, listed and deleted", async () => {
  expect(await client.threads.create({ thread_id: "t/1", parallel: true })).toMatchObject({ thread_id: "t/1", parallel: true });
  await client.threads.write("t/1", [{ type: "run.started", run_id: "ta" }, { type: "run.completed", run_id: "ta" }], { dialect: "runwire" });
  expect(await client.threads.get("t/1")).toMatchObject({ runs: 1 });
  expect((await client.threads.messages("t/1")).messages.map((message) => message.messageId)).toEqual(["ta"]);
  expect((await client.threads.page("t/1")).frames).toHaveLength(2);
  expect((await client.threads.list({ limit: 1 })).threads).toHaveLength(1);
  await client.threads.delete("t/1");
  await expect(client.threads.get("t/1")).rejects.toMatchObject({ status: 410 });
});

test("an interaction is answered once, and an invalid answer has field errors", async () => {
  const { run_id } = await client.runs.create({ agent: "demo", message: "hello" });
  const interaction = await until(async () => (await client.interactions.list({ run: run_id })).interactions[0]);
  expect(interaction).toMatchObject({ status: "open", kind: "form", answer: null });
  const refused = await client.interactions.answer(run_id, "trip", { decision: "submitted", values: { name: 1 } }).catch((error: unknown) => error);
  expect(refused).toMatchObject({ status: 422, code: "invalid_answer" });
  const pointers = (refused as ProblemError).problem.errors?.map((each) => each.pointer);
  expect(pointers).toContain("/name");
  expect(await client.interactions.answer(run_id, "trip", { decision: "cancelled", reason: "no time" })).toMatchObject({ status: "cancelled", answer: { decision: "cancelled" } });
  await expect(client.interactions.answer(run_id, "trip", { decision: "submitted", values: {} })).rejects.toMatchObject({ status: 409 });
  expect(await client.interactions.get(run_id, "trip")).toMatchObject({ status: "cancelled" });
  await until(async () => (await client.runs.get(run_id)).ended_at !== null);
  const again = await client.runs.retry(run_id, { run_id: "retried" });
  expect(again.run_id).toBe("retried");
  await client.runs.cancel("retried");
});

test("events of unknown types are yielded and detected", async () => {
  await client.runs.write("newer", [{ type: "quantum.leap", distance: 3 }], { dialect: "runwire", end: true });
  const known: string[] = [];
  const unknown: [string, unknown][] = [];
  for await (const event of client.runs.stream("newer")) {
    if (isUnknown(event)) unknown.push([event.type, event["distance"]]);
    else known.push(event.type);
  }
  expect(unknown).toEqual([["quantum.leap", 3]]);
  expect(known).toContain("run.started");
});

describe("an invalid response", () => {
  /** Runs a check against a server that sends the same response to every request. */
  async function withResponse(status: number, headers: Record<string, string>, body: string, check: (target: Runwire) => Promise<void>): Promise<void> {
    const target = createServer((request, response) => {
      tokens.push(request.headers.authorization);
      response.writeHead(status, headers).end(body);
    });
    await new Promise<void>((resolve) => target.listen(0, "127.0.0.1", resolve));
    await check(new Runwire({ url: `http://127.0.0.1:${(target.address() as AddressInfo).port}`, token: () => Promise.resolve("t0ken"), retry: { initialDelay: 1, maxDelay: 1 } }));
    await new Promise((resolve) => target.close(resolve));
  }
  let tokens: (string | undefined)[] = [];

  test("of another server is a ProtocolError, and the token is sent", async () => {
    tokens = [];
    await withResponse(200, { "content-type": "text/html" }, "<h1>welcome</h1>", async (target) => {
      await expect(target.runs.get("r")).rejects.toBeInstanceOf(ProtocolError);
      await expect(target.runs.stream("r")[Symbol.asyncIterator]().next()).rejects.toBeInstanceOf(ProtocolError);
    });
    expect(tokens).toEqual(["Bearer t0ken", "Bearer t0ken"]);
  });

  test("without a problem document keeps its status", async () => {
    await withResponse(418, {}, "short and stout", async (target) => {
      const error = await target.runs.get("r").catch((error: unknown) => error);
      expect(error).toBeInstanceOf(ProblemError);
      expect(error).toMatchObject({ status: 418, code: undefined });
    });
  });

  test("with a frame that is not JSON ends the stream with an error", async () => {
    await withResponse(200, { "content-type": "text/event-stream" }, "id: 1\ndata: {oops\n\n", async (target) => {
      await expect(target.runs.stream("r")[Symbol.asyncIterator]().next()).rejects.toBeInstanceOf(ProtocolError);
    });
  });

  test("with a retryable status is retried up to the limit", async () => {
    await withResponse(503, { "retry-after": "0" }, "{}", async (target) => {
      const stream = target.runs.stream("r");
      await expect(stream[Symbol.asyncIterator]().next()).rejects.toMatchObject({ status: 503, retryAfter: 0 });
      expect(stream.status).toBe("ended");
    });
  });

  test("from an unreachable server is a NetworkError", async () => {
    await expect(new Runwire({ url: "http://127.0.0.1:9" }).health()).rejects.toBeInstanceOf(NetworkError);
  });
});
