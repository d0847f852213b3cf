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

/** Writes a run of so many pieces of text and tells its id. */
async function written(pieces: number, end = true): Promise<string> {
  const run = `run-${++count}`;
  const delta = (piece: number): object => ({ type: "text.delta", message_id: "m1", content: `第 ${piece} 块 ` });
  const frames = [{ type: "run.started", message: "讲个故事" }, { type: "text.started", message_id: "m1" }, ...Array.from({ length: pieces }, (_, at) => delta(at))];
  await client.runs.write(run, frames, { dialect: "runwire", end });
  return run;
}

/** Reads a stream to its end: the events, and how often it caught up. */
async function all<E extends object>(stream: RunStream<E>): Promise<{ events: E[]; caughtUp: number }> {
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
  test("a closed run is read from its start to its end, once", async () => {
    const run = await written(20);
    const stream = client.runs.stream(run);
    const { events } = await all(stream);
    expect(events).toEqual(await pageOf(run));
    expect(events.at(-1)?.type).toBe("run.completed");
    expect(stream.status).toBe("ended");
    expect(stream.cursor).toBe(cursorOf(events.at(-1) as object));
  });

  test("reading goes on after any event, and at the end there is nothing", async () => {
    const run = await written(5);
    const { events } = await all(client.runs.stream(run));
    for (const [place, event] of events.entries()) {
      const rest = await all(client.runs.stream(run, { after: cursorOf(event) }));
      expect(rest.events).toEqual(events.slice(place + 1));
    }
  });

  test("a reader that breaks off goes on where it was", async () => {
    const run = await written(10);
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

  test("a live run is followed, and catching up is told once per connection", async () => {
    const run = await written(3, false);
    const statuses: StreamStatus[] = [];
    const seen: string[] = [];
    for await (const event of client.runs.stream(run, { onStatus: (status) => statuses.push(status) })) {
      seen.push(event.type);
      if (isCaughtUp(event)) await client.runs.write(run, [{ type: "text.delta", message_id: "m1", content: "!" }], { dialect: "runwire", end: true });
    }
    expect(seen).toEqual(["run.started", "text.started", "text.delta", "text.delta", "text.delta", "caught-up", "text.delta", "text.finished", "run.completed"]);
    expect(statuses).toEqual(["connecting", "catching-up", "live", "ended"]);
  });

  test("from the end, only what happens from then on is handed out, and the place is known", async () => {
    const run = await written(3, false);
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
    const again = await all(client.runs.stream(run, { after: start }));
    expect(again.events.map((event) => event.type)).toEqual(seen.slice(1));
    expect((await all(client.runs.stream(run, { after: "end" }))).events).toEqual([]);
  });

  test("without following, the stream ends at what is there", async () => {
    const run = await written(3, false);
    const { events } = await all(client.runs.stream(run, { follow: false }));
    expect(events).toHaveLength(5);
    await client.runs.cancel(run);
  });

  test("a thread's stream goes on with its next run until it is left", async () => {
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
      const { events } = await all(client.runs.stream(run, { dialect, follow: false }));
      expect(events.length, dialect).toBeGreaterThan(0);
      const last = events.at(-1) as object;
      expect(cursorOf(last), dialect).toMatch(/^\d+(-\d+)?$/);
      const again = await all(client.runs.stream(run, { dialect, after: cursorOf(events[0] as object), follow: false }));
      expect(again.events, dialect).toEqual(events.slice(1));
      expect(nameOf(last) !== undefined, dialect).toBe(["easyflow-chat", "social-app"].includes(dialect));
    }
    await client.runs.cancel(run);
  });

  test("compact gives the same text in fewer events", async () => {
    const run = await written(200);
    const textOf = (events: RunwireEvent[]): string => events.map((event) => (event.type === "text.delta" ? event.content : "")).join("");
    const [{ events: all200 }, { events: few }] = [await all(client.runs.stream(run)), await all(client.runs.stream(run, { compact: true }))];
    expect(textOf(few)).toBe(textOf(all200));
    expect(few.length).toBeLessThan(20);
  });

  test("slots choose the extension frames, and a cursor belongs to the choice", async () => {
    const run = `run-${++count}`;
    const thinking = [{ type: "thinking.started", message_id: "t" }, { type: "thinking.delta", message_id: "t", content: "Hm." }];
    const asked = { type: "interaction.requested", interaction_id: "q", kind: "form" };
    await client.runs.write(run, [...thinking, asked], { dialect: "runwire", end: true });
    const slotsOf = (events: object[]): unknown[] => events.map((event) => (event as { data?: { runwire?: { type: string } } }).data?.runwire?.type).filter((type) => type !== undefined);
    const read = async (slots: "all" | "asks" | "none"): Promise<object[]> => (await all(client.runs.stream(run, { dialect: "agio", slots }))).events;
    const asks = await read("asks");
    expect(slotsOf(await read("all"))).toContain("thinking.delta");
    expect(slotsOf(asks)).toEqual(["interaction.requested", "run.suspended", "interaction.resolved"]);
    expect(slotsOf(await read("none"))).toEqual([]);
    const { frames } = await client.runs.page(run, { dialect: "agio", slots: "asks" });
    expect(frames.map(({ frame }) => frame)).toEqual(asks);
    const after = cursorOf(asks[0] as object);
    expect((await all(client.runs.stream(run, { dialect: "agio", slots: "asks", after }))).events).toEqual(asks.slice(1));
    await expect(all(client.runs.stream(run, { dialect: "agio", after }))).rejects.toMatchObject({ code: "bad_cursor" });
  });

  test("a dialect whose stream ends while a person is asked goes on after the answer", async () => {
    const run = (await client.runs.create({ agent: "demo", message: "hello" })).run_id;
    const seen: object[] = [];
    for await (const event of client.runs.stream(run, { dialect: "ag-ui" })) {
      if (isCaughtUp(event)) continue;
      seen.push(event);
      if (event["type"] !== "RUN_FINISHED") continue;
      const [question] = (await client.interactions.list({ run })).interactions;
      if (question !== undefined) await client.interactions.answer(run, question.interaction_id, { decision: question.kind === "form" ? "cancelled" : "rejected" });
    }
    const { frames } = await client.runs.page(run, { dialect: "ag-ui", limit: 1000 });
    expect(seen).toEqual(frames.map(({ frame }) => frame));
    expect((await client.runs.get(run)).ended_at).not.toBeNull();
  });

  test("attaching begins with the present, and goes on with what happens", async () => {
    const run = await written(50, false);
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

describe("nothing twice, nothing missing", () => {
  test("a connection may be cut after any byte of the answer", async () => {
    const run = await written(1);
    const expected = await pageOf(run);
    const length = await answerLength(run);
    const lanes = 4;
    const cutAt = async (lane: number): Promise<number> => {
      const proxy = await Proxy.start(server.url);
      const cutting = new Runwire({ url: proxy.url, retry: { ...RETRY, connectAttempts: Infinity, maxDelay: 1 } });
      for (let bytes = 1 + lane; bytes <= length; bytes += lanes) {
        proxy.cutFirstAfter(bytes);
        const { events } = await all(cutting.runs.stream(run));
        expect(events, `cut after ${bytes} bytes`).toEqual(expected);
      }
      await proxy.stop();
      return proxy.connections;
    };
    const connections = await Promise.all(Array.from({ length: lanes }, (_, lane) => cutAt(lane)));
    expect(connections.reduce((sum, each) => sum + each)).toBeGreaterThan(length);
  });

  test("connections that carry a little each time still bring it all", async () => {
    const run = await written(30);
    const proxy = await Proxy.start(server.url);
    const cutting = new Runwire({ url: proxy.url, retry: { ...RETRY, connectAttempts: Infinity, maxDelay: 1 } });
    // Enough for the head of the answer and one event.
    proxy.room = () => 700;
    const { events } = await all(cutting.runs.stream(run));
    expect(events).toEqual(await pageOf(run));
    expect(proxy.connections).toBeGreaterThan(10);
    await proxy.stop();
  });

  test("a reader that does not follow gets all that is there over a broken connection", async () => {
    const run = await written(3, false);
    const expected = await pageOf(run);
    const proxy = await Proxy.start(server.url);
    const cutting = new Runwire({ url: proxy.url, retry: { ...RETRY, connectAttempts: Infinity, maxDelay: 1 } });
    for (let bytes = 1; bytes < 900; bytes += 29) {
      proxy.cutFirstAfter(bytes);
      expect((await all(cutting.runs.stream(run, { follow: false }))).events, `cut after ${bytes} bytes`).toEqual(expected);
    }
    await proxy.stop();
    await client.runs.cancel(run);
  });

  test("an attached reader whose snapshot is cut sees it once", async () => {
    const run = await written(10, false);
    const { events: expected } = await all(client.runs.stream(run, { attach: true, follow: false }));
    const proxy = await Proxy.start(server.url);
    const cutting = new Runwire({ url: proxy.url, retry: { ...RETRY, connectAttempts: Infinity, maxDelay: 1 } });
    for (let bytes = 100; bytes < 1500; bytes += 37) {
      proxy.cutFirstAfter(bytes);
      const abort = new AbortController();
      const seen: object[] = [];
      for await (const event of cutting.runs.stream(run, { attach: true, signal: abort.signal })) {
        if (isCaughtUp(event)) abort.abort();
        else seen.push(event);
      }
      expect(seen, `cut after ${bytes} bytes`).toEqual(expected);
    }
    await proxy.stop();
    await client.runs.cancel(run);
  });

  test("a server that is killed and started again in the middle costs no event", async () => {
    const own = await Server.start();
    const writer = new Runwire({ url: own.url, retry: { ...RETRY, giveUpAfter: 30_000 } });
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
      await own.kill();
      await until(() => stream.status === "waiting");
      await own.restart();
      await writer.runs.write("r", [piece(2 * round + 1)], { dialect: "runwire" });
      await until(() => seen.length >= 4 + 2 * round);
    }
    await own.stop();
    await own.restart();
    await writer.runs.write("r", [], { dialect: "runwire", end: true });
    await reading;
    const { frames } = await writer.runs.page("r", { limit: 1000 });
    expect(seen).toEqual(frames.map(({ frame }) => frame));
    expect(statuses.filter((status) => status === "waiting").length).toBeGreaterThanOrEqual(4);
    await own.remove();
  });

  test("a slow reader gets everything and holds up nobody", async () => {
    const run = await written(3000);
    let events = 0;
    for await (const event of client.runs.stream(run)) {
      if (events % 500 === 0) await all(client.runs.stream(run, { after: "2990" }));
      if (!isCaughtUp(event)) events++;
    }
    expect(events).toBe((await client.runs.get(run)).counts.events);
  });
});

describe("an end that is none of the run's", () => {
  test("an unknown run is an error with a code", async () => {
    const error = await all(client.runs.stream("nobody")).catch((error: unknown) => error);
    expect(error).toBeInstanceOf(ProblemError);
    expect(error).toMatchObject({ status: 404, code: "run_unknown" });
  });

  test("a cursor beyond the end and one that is none are errors", async () => {
    const run = await written(1);
    await expect(all(client.runs.stream(run, { after: "99999" }))).rejects.toMatchObject({ code: "cursor_beyond_end" });
    await expect(all(client.runs.stream(run, { after: "soon" }))).rejects.toMatchObject({ code: "bad_cursor" });
  });

  test("what retention has removed is an error that tells where to begin, never a gap", async () => {
    const own = await Server.start('[retention]\nbytes = "1kB"\n');
    const forgetful = new Runwire({ url: own.url, retry: RETRY });
    const frames = Array.from({ length: 50 }, () => ({ type: "custom", value: "x".repeat(100) }));
    for (const run of ["a", "b", "c"]) await forgetful.runs.write(run, frames, { dialect: "runwire", thread: "t", end: true });
    // A server looks for what is too old when it starts.
    await own.stop();
    await own.restart();
    const gone = await until(async () => {
      try {
        await all(forgetful.threads.stream("t", { after: "1", follow: false }));
        return undefined;
      } catch (error) {
        return error as ProblemError;
      }
    });
    expect(gone).toMatchObject({ status: 410, code: "cursor_trimmed" });
    const { events } = await all(forgetful.threads.stream("t", { after: String(gone.problem["after"]), follow: false }));
    expect(events[0]?.seq ?? gone.problem.oldest).toBe(gone.problem.oldest);
    await own.remove();
  });

  test("a thread that was deleted is an error", async () => {
    const run = await written(1);
    await client.threads.delete(run);
    await expect(all(client.threads.stream(run))).rejects.toMatchObject({ status: 410, code: "thread_deleted" });
  });

  test("a reader that leaves is no error, and the run goes on", async () => {
    const run = (await client.runs.create({ agent: "endless", message: "x" })).run_id;
    const abort = new AbortController();
    for await (const event of client.runs.stream(run, { signal: abort.signal })) if (isCaughtUp(event)) abort.abort();
    expect(abort.signal.aborted).toBe(true);
    expect((await client.runs.get(run)).ended_at).toBeNull();
    await client.runs.cancel(run);
  });

  test("a signal that is aborted before the start opens no connection", async () => {
    expect(await all(client.runs.stream("nobody", { signal: AbortSignal.abort() }))).toEqual({ events: [], caughtUp: 0 });
  });

  test("a server that nobody runs is given up after a few attempts", async () => {
    const away = new Runwire({ url: "http://127.0.0.1:9", retry: RETRY });
    await expect(all(away.runs.stream("r"))).rejects.toBeInstanceOf(NetworkError);
  });

  test("a connection that falls silent is made anew", async () => {
    const run = await written(1, false);
    const impatient = new Runwire({ url: server.url, retry: { ...RETRY, connectAttempts: Infinity, idleTimeout: 100 } });
    const waits: unknown[] = [];
    const abort = new AbortController();
    const onStatus = (status: StreamStatus, detail?: Error): void => void (status === "waiting" && waits.push(detail));
    const events: object[] = [];
    let caughtUp = 0;
    for await (const event of impatient.runs.stream(run, { signal: abort.signal, onStatus })) {
      if (!isCaughtUp(event)) events.push(event);
      else if (++caughtUp === 2) abort.abort();
    }
    expect(events).toHaveLength(3);
    expect(waits[0]).toBeInstanceOf(NetworkError);
    await client.runs.cancel(run);
  });

  test("one stream is not read by two at once", async () => {
    const run = await written(3);
    const stream = client.runs.stream(run);
    const first = stream[Symbol.asyncIterator]();
    await first.next();
    await expect(stream[Symbol.asyncIterator]().next()).rejects.toThrow("being read already");
    await first.return();
  });
});

async function answerLength(run: string): Promise<number> {
  const response = await fetch(client.urlOf(["v1", "runs", run, "events"]), { headers: { accept: "text/event-stream" } });
  const head = [...response.headers].reduce((sum, [name, value]) => sum + name.length + value.length + 4, 40);
  return head + (await response.arrayBuffer()).byteLength;
}
