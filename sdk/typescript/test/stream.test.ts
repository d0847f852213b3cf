import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  cursorOf,
  isCaughtUp,
  nameOf,
  NetworkError,
  ProblemError,
  type RunStream,
  Runwire,
  type RunwireEvent,
  type StreamStatus,
} from "../src/index.js";
import { Proxy } from "./proxy.js";
import { Server, until } from "./server.js";

const RETRY = { initialDelay: 1, maxDelay: 20, connectAttempts: 3 };

let server: Server;
let client: Runwire;
let count = 0;

beforeAll(async () => {
  server = await Server.start();
  client = new Runwire({ url: server.url, retry: RETRY });
});

afterAll(async () => {
  await server.remove();
});

/** Writes a run with a number of text deltas and returns its id. */
async function writeRun(pieces: number, end = true): Promise<string> {
  const run = `run-${++count}`;
  const delta = (piece: number): object => ({ type: "text.delta", message_id: "m1", content: `第 ${piece} 块 ` });
  const frames = [{ type: "run.started", message: "讲个故事" }, { type: "text.started", message_id: "m1" }, ...Array.from({ length: pieces }, (_, at) => delta(at))];
  await client.runs.write(run, frames, { dialect: "runwire", end });
  return run;
}

/** Reads a stream to its end; returns the events and how often it caught up. */
async function readAll<E extends object>(stream: RunStream<E>): Promise<{ events: E[]; caughtUp: number }> {
  const events: E[] = [];
  let caughtUp = 0;
  for await (const event of stream) {
    if (isCaughtUp(event)) caughtUp++;
    else events.push(event);
  }
  return { events, caughtUp };
}

async function pageOf(run: string): Promise<unknown[]> {
  const { frames } = await client.runs.page(run, { limit: 1000 });
  return frames.map(({ frame }) => frame);
}

describe("reading", () => {
  test("a run that has ended is read once from start to end", async () => {
    const run = await writeRun(20);
    const stream = client.runs.stream(run);
    const { events } = await readAll(stream);
    expect(events).toEqual(await pageOf(run));
    expect(events.at(-1)?.type).toBe("run.completed");
    expect(stream.status).toBe("ended");
    expect(stream.cursor).toBe(cursorOf(events.at(-1) as object));
  });

  test("a stream resumes after any event, and is empty after the last one", async () => {
    const run = await writeRun(5);
    const { events } = await readAll(client.runs.stream(run));
    for (const [place, event] of events.entries()) {
      const rest = await readAll(client.runs.stream(run, { after: cursorOf(event) }));
      expect(rest.events).toEqual(events.slice(place + 1));
    }
  });

  test("a loop after break continues where the last one stopped", async () => {
    const run = await writeRun(10);
    const stream = client.runs.stream(run);
    const seen: object[] = [];
    for (let part = 0; stream.cursor === undefined || part < 5; part++) {
      for await (const event of stream) {
        seen.push(event);
        if (seen.length % 4 === 0) break;
      }
    }
    expect(seen).toEqual(await pageOf(run));
  });

  test("a live run is followed, with one caught-up marker per connection", async () => {
    const run = await writeRun(3, false);
    const statuses: StreamStatus[] = [];
    const seen: string[] = [];
    for await (const event of client.runs.stream(run, { onStatus: (status) => statuses.push(status) })) {
      seen.push(event.type);
      if (isCaughtUp(event)) await client.runs.write(run, [{ type: "text.delta", message_id: "m1", content: "!" }], { dialect: "runwire", end: true });
    }
    expect(seen).toEqual(["run.started", "text.started", "text.delta", "text.delta", "text.delta", "caught-up", "text.delta", "text.finished", "run.completed"]);
    expect(statuses).toEqual(["connecting", "catching-up", "live", "ended"]);
  });

  test("a stream from the end yields only new events, and has a cursor", async () => {
    const run = await writeRun(3, false);
    const stream = client.runs.stream(run, { after: "end" });
    const seen: string[] = [];
    let start: string | undefined;
    for await (const event of stream) {
      seen.push(event.type);
      if (!isCaughtUp(event)) continue;
      start = stream.cursor;
      await client.runs.write(run, [{ type: "text.delta", message_id: "m1", content: "!" }], { dialect: "runwire", end: true });
    }
    expect(seen).toEqual(["caught-up", "text.delta", "text.finished", "run.completed"]);
    expect(start).toMatch(/^\d+$/);
    const again = await readAll(client.runs.stream(run, { after: start }));
    expect(again.events.map((event) => event.type)).toEqual(seen.slice(1));
    expect((await readAll(client.runs.stream(run, { after: "end" }))).events).toEqual([]);
  });

  test("a stream that does not follow ends after the stored events", async () => {
    const run = await writeRun(3, false);
    const { events } = await readAll(client.runs.stream(run, { follow: false }));
    expect(events).toHaveLength(5);
    await client.runs.cancel(run);
  });

  test("a thread's stream continues with later runs until it is aborted", async () => {
    const thread = `thread-${++count}`;
    const abort = new AbortController();
    const runs = new Set<string>();
    await client.runs.write(`${thread}-a`, [{ type: "run.completed" }], { dialect: "runwire", thread });
    for await (const event of client.threads.stream(thread, { signal: abort.signal })) {
      if (isCaughtUp(event)) await client.runs.write(`${thread}-b`, [{ type: "run.completed" }], { dialect: "runwire", thread });
      else {
        runs.add(event.run_id);
        if (event.run_id === `${thread}-b` && event.type === "run.completed") abort.abort();
      }
    }
    expect([...runs]).toEqual([`${thread}-a`, `${thread}-b`]);
  });

  test("every dialect is read with its cursors and names", async () => {
    const run = (await client.runs.create({ agent: "demo", message: "天气怎么样" })).run_id;
    await until(async () => (await client.runs.get(run)).status === "suspended");
    for (const dialect of ["loom", "loom-export", "streaming-engine", "agio", "ag-ui", "social-app", "easyflow-chat", "text"] as const) {
      const { events } = await readAll(client.runs.stream(run, { dialect, follow: false }));
      expect(events.length, dialect).toBeGreaterThan(0);
      const last = events.at(-1) as object;
      expect(cursorOf(last), dialect).toMatch(/^\d+(-\d+)?$/);
      const again = await readAll(client.runs.stream(run, { dialect, after: cursorOf(events[0] as object), follow: false }));
      expect(again.events, dialect).toEqual(events.slice(1));
      expect(nameOf(last) !== undefined, dialect).toBe(["easyflow-chat", "social-app"].includes(dialect));
    }
    await client.runs.cancel(run);
  });

  test("compact yields the same text in fewer events", async () => {
    const run = await writeRun(200);
    const textOf = (events: RunwireEvent[]): string => events.map((event) => (event.type === "text.delta" ? event.content : "")).join("");
    const [{ events: full }, { events: compacted }] = [await readAll(client.runs.stream(run)), await readAll(client.runs.stream(run, { compact: true }))];
    expect(textOf(compacted)).toBe(textOf(full));
    expect(compacted.length).toBeLessThan(20);
  });

  test("slots select the extension frames, and a cursor is bound to the selection", async () => {
    const run = `run-${++count}`;
    const thinking = [{ type: "thinking.started", message_id: "t" }, { type: "thinking.delta", message_id: "t", content: "Hm." }];
    const requested = { type: "interaction.requested", interaction_id: "q", kind: "form" };
    await client.runs.write(run, [...thinking, requested], { dialect: "runwire", end: true });
    const slotsOf = (events: object[]): unknown[] => events.map((event) => (event as { data?: { runwire?: { type: string } } }).data?.runwire?.type).filter((type) => type !== undefined);
    const read = async (slots: "all" | "asks" | "none"): Promise<object[]> => (await readAll(client.runs.stream(run, { dialect: "agio", slots }))).events;
    const asks = await read("asks");
    expect(slotsOf(await read("all"))).toContain("thinking.delta");
    expect(slotsOf(asks)).toEqual(["interaction.requested", "run.suspended", "interaction.resolved"]);
    expect(slotsOf(await read("none"))).toEqual([]);
    const { frames } = await client.runs.page(run, { dialect: "agio", slots: "asks" });
    expect(frames.map(({ frame }) => frame)).toEqual(asks);
    const after = cursorOf(asks[0] as object);
    expect((await readAll(client.runs.stream(run, { dialect: "agio", slots: "asks", after }))).events).toEqual(asks.slice(1));
    await expect(readAll(client.runs.stream(run, { dialect: "agio", after }))).rejects.toMatchObject({ code: "bad_cursor" });
  });

  test("a dialect whose stream ends at an interaction continues after the answer", async () => {
    const run = (await client.runs.create({ agent: "demo", message: "hello" })).run_id;
    const seen: object[] = [];
    for await (const event of client.runs.stream(run, { dialect: "ag-ui" })) {
      if (isCaughtUp(event)) continue;
      seen.push(event);
      if (event["type"] !== "RUN_FINISHED") continue;
      const [interaction] = (await client.interactions.list({ run })).interactions;
      if (interaction !== undefined) await client.interactions.answer(run, interaction.interaction_id, { decision: interaction.kind === "form" ? "cancelled" : "rejected" });
    }
    const { frames } = await client.runs.page(run, { dialect: "ag-ui", limit: 1000 });
    expect(seen).toEqual(frames.map(({ frame }) => frame));
    expect((await client.runs.get(run)).ended_at).not.toBeNull();
  });

  test("attaching starts with a snapshot and continues with live events", async () => {
    const run = await writeRun(50, false);
    let content = "";
    let events = 0;
    for await (const event of client.runs.stream(run, { attach: true })) {
      if (isCaughtUp(event)) await client.runs.write(run, [{ type: "text.delta", message_id: "m1", content: "Ende" }], { dialect: "runwire", end: true });
      else {
        events++;
        if (event.type === "text.delta") content += event.content;
      }
    }
    expect(content).toBe(`${Array.from({ length: 50 }, (_, piece) => `第 ${piece} 块 `).join("")}Ende`);
    expect(events).toBeLessThan(20);
  });
});

describe("exactly-once delivery", () => {
  test("holds when the connection closes after any byte of the response", async () => {
    const run = await writeRun(1);
    const expected = await pageOf(run);
    const length = await responseLength(run);
    const workers = 4;
    const closeAt = async (worker: number): Promise<number> => {
      const proxy = await Proxy.start(server.url);
      const unreliable = new Runwire({ url: proxy.url, retry: { ...RETRY, connectAttempts: Infinity, maxDelay: 1 } });
      for (let bytes = 1 + worker; bytes <= length; bytes += workers) {
        proxy.closeNextAfter(bytes);
        const { events } = await readAll(unreliable.runs.stream(run));
        expect(events, `closed after ${bytes} bytes`).toEqual(expected);
      }
      await proxy.stop();
      return proxy.connections;
    };
    const connections = await Promise.all(Array.from({ length: workers }, (_, worker) => closeAt(worker)));
    expect(connections.reduce((sum, each) => sum + each)).toBeGreaterThan(length);
  });

  test("holds when every connection carries only a few bytes", async () => {
    const run = await writeRun(30);
    const proxy = await Proxy.start(server.url);
    const unreliable = new Runwire({ url: proxy.url, retry: { ...RETRY, connectAttempts: Infinity, maxDelay: 1 } });
    // Enough for the response headers and one event.
    proxy.byteLimit = () => 700;
    const { events } = await readAll(unreliable.runs.stream(run));
    expect(events).toEqual(await pageOf(run));
    expect(proxy.connections).toBeGreaterThan(10);
    await proxy.stop();
  });

  test("holds for a stream that does not follow", async () => {
    const run = await writeRun(3, false);
    const expected = await pageOf(run);
    const proxy = await Proxy.start(server.url);
    const unreliable = new Runwire({ url: proxy.url, retry: { ...RETRY, connectAttempts: Infinity, maxDelay: 1 } });
    for (let bytes = 1; bytes < 900; bytes += 29) {
      proxy.closeNextAfter(bytes);
      expect((await readAll(unreliable.runs.stream(run, { follow: false }))).events, `closed after ${bytes} bytes`).toEqual(expected);
    }
    await proxy.stop();
    await client.runs.cancel(run);
  });

  test("holds for a snapshot that is truncated", async () => {
    const run = await writeRun(10, false);
    const { events: expected } = await readAll(client.runs.stream(run, { attach: true, follow: false }));
    const proxy = await Proxy.start(server.url);
    const unreliable = new Runwire({ url: proxy.url, retry: { ...RETRY, connectAttempts: Infinity, maxDelay: 1 } });
    for (let bytes = 100; bytes < 1500; bytes += 37) {
      proxy.closeNextAfter(bytes);
      const abort = new AbortController();
      const seen: object[] = [];
      for await (const event of unreliable.runs.stream(run, { attach: true, signal: abort.signal })) {
        if (isCaughtUp(event)) abort.abort();
        else seen.push(event);
      }
      expect(seen, `closed after ${bytes} bytes`).toEqual(expected);
    }
    await proxy.stop();
    await client.runs.cancel(run);
  });

  test("holds when the server is killed and restarted", async () => {
    const restarting = await Server.start();
    const writer = new Runwire({ url: restarting.url, retry: { ...RETRY, giveUpAfter: 30_000 } });
    const piece = (at: number): object => ({ type: "text.delta", message_id: "m1", content: `${at} ` });
    await writer.runs.write("r", [{ type: "run.started" }, { type: "text.started", message_id: "m1" }], { dialect: "runwire" });
    const seen: RunwireEvent[] = [];
    const statuses: StreamStatus[] = [];
    const stream = writer.runs.stream("r", { onStatus: (status) => statuses.push(status) });
    const reading = (async () => {
      for await (const event of stream) if (!isCaughtUp(event)) seen.push(event);
    })();
    for (let round = 0; round < 3; round++) {
      await writer.runs.write("r", [piece(2 * round)], { dialect: "runwire" });
      await until(() => seen.length >= 3 + 2 * round);
      await restarting.kill();
      await until(() => stream.status === "waiting");
      await restarting.restart();
      await writer.runs.write("r", [piece(2 * round + 1)], { dialect: "runwire" });
      await until(() => seen.length >= 4 + 2 * round);
    }
    await restarting.stop();
    await restarting.restart();
    await writer.runs.write("r", [], { dialect: "runwire", end: true });
    await reading;
    const { frames } = await writer.runs.page("r", { limit: 1000 });
    expect(seen).toEqual(frames.map(({ frame }) => frame));
    expect(statuses.filter((status) => status === "waiting").length).toBeGreaterThanOrEqual(4);
    await restarting.remove();
  });

  test("holds for a slow reader, which does not block others", async () => {
    const run = await writeRun(3000);
    let events = 0;
    for await (const event of client.runs.stream(run)) {
      if (events % 500 === 0) await readAll(client.runs.stream(run, { after: "2990" }));
      if (!isCaughtUp(event)) events++;
    }
    expect(events).toBe((await client.runs.get(run)).counts.events);
  });
});

describe("a stream that ends before the run", () => {
  test("an unknown run is an error with a code", async () => {
    const error = await readAll(client.runs.stream("nobody")).catch((error: unknown) => error);
    expect(error).toBeInstanceOf(ProblemError);
    expect(error).toMatchObject({ status: 404, code: "run_unknown" });
  });

  test("a cursor beyond the end and an invalid cursor are errors", async () => {
    const run = await writeRun(1);
    await expect(readAll(client.runs.stream(run, { after: "99999" }))).rejects.toMatchObject({ code: "cursor_beyond_end" });
    await expect(readAll(client.runs.stream(run, { after: "soon" }))).rejects.toMatchObject({ code: "bad_cursor" });
  });

  test("a trimmed cursor is an error with the oldest cursor, never a gap", async () => {
    const restarting = await Server.start('[retention]\nbytes = "1kB"\n');
    const trimming = new Runwire({ url: restarting.url, retry: RETRY });
    const frames = Array.from({ length: 50 }, () => ({ type: "custom", value: "x".repeat(100) }));
    for (const run of ["a", "b", "c"]) await trimming.runs.write(run, frames, { dialect: "runwire", thread: "t", end: true });
    // A server applies retention when it starts.
    await restarting.stop();
    await restarting.restart();
    const gone = await until(async () => {
      try {
        await readAll(trimming.threads.stream("t", { after: "1", follow: false }));
        return undefined;
      } catch (error) {
        return error as ProblemError;
      }
    });
    expect(gone).toMatchObject({ status: 410, code: "cursor_trimmed" });
    const { events } = await readAll(trimming.threads.stream("t", { after: String(gone.problem["after"]), follow: false }));
    expect(events[0]?.seq ?? gone.problem.oldest).toBe(gone.problem.oldest);
    await restarting.remove();
  });

  test("a deleted thread is an error", async () => {
    const run = await writeRun(1);
    await client.threads.delete(run);
    await expect(readAll(client.threads.stream(run))).rejects.toMatchObject({ status: 410, code: "thread_deleted" });
  });

  test("an aborted stream ends without an error, and the run continues", async () => {
    const run = (await client.runs.create({ agent: "endless", message: "x" })).run_id;
    const abort = new AbortController();
    for await (const event of client.runs.stream(run, { signal: abort.signal })) if (isCaughtUp(event)) abort.abort();
    expect(abort.signal.aborted).toBe(true);
    expect((await client.runs.get(run)).ended_at).toBeNull();
    await client.runs.cancel(run);
  });

  test("a signal that is aborted before the start opens no connection", async () => {
    expect(await readAll(client.runs.stream("nobody", { signal: AbortSignal.abort() }))).toEqual({ events: [], caughtUp: 0 });
  });

  test("an unreachable server is given up after the connect attempts", async () => {
    const unreachable = new Runwire({ url: "http://127.0.0.1:9", retry: RETRY });
    await expect(readAll(unreachable.runs.stream("r"))).rejects.toBeInstanceOf(NetworkError);
  });

  test("an idle connection is reconnected", async () => {
    const run = await writeRun(1, false);
    const timingOut = new Runwire({ url: server.url, retry: { ...RETRY, connectAttempts: Infinity, idleTimeout: 100 } });
    const waits: unknown[] = [];
    const abort = new AbortController();
    const onStatus = (status: StreamStatus, detail?: Error): void => void (status === "waiting" && waits.push(detail));
    const events: object[] = [];
    let caughtUp = 0;
    for await (const event of timingOut.runs.stream(run, { signal: abort.signal, onStatus })) {
      if (!isCaughtUp(event)) events.push(event);
      else if (++caughtUp === 2) abort.abort();
    }
    expect(events).toHaveLength(3);
    expect(waits[0]).toBeInstanceOf(NetworkError);
    await client.runs.cancel(run);
  });

  test("a stream cannot be iterated twice at the same time", async () => {
    const run = await writeRun(3);
    const stream = client.runs.stream(run);
    const first = stream[Symbol.asyncIterator]();
    await first.next();
    await expect(stream[Symbol.asyncIterator]().next()).rejects.toThrow("being read already");
    await first.return();
  });
});

async function responseLength(run: string): Promise<number> {
  const response = await fetch(client.urlOf(["v1", "runs", run, "events"]), { headers: { accept: "text/event-stream" } });
  const head = [...response.headers].reduce((sum, [name, value]) => sum + name.length + value.length + 4, 40);
  return head + (await response.arrayBuffer()).byteLength;
}
