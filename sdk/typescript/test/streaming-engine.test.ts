import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { type HandledEvent, MessageStreamHandler, type MessageState } from "../src/index.js";
import { cases, lines } from "./vectors.js";

/** What tells the runs of a stream apart. */
interface Ids {
  data?: { request_id?: string };
  metadata?: { request_id?: string };
}

/** Folds frames of StreamingEngine, one handler a run. */
function handled(frames: (HandledEvent & Ids)[]): MessageState[] {
  const handlers = new Map<string, MessageStreamHandler>();
  let run = "";
  for (const frame of frames) {
    run = frame.metadata?.request_id ?? frame.data?.request_id ?? run;
    const handler = handlers.get(run) ?? new MessageStreamHandler();
    handlers.set(run, handler);
    handler.handleEvent(frame);
  }
  return [...handlers.values()].map((handler) => {
    handler.handleEnd();
    return handler.message;
  });
}

function expected(folder: string): MessageState[] {
  return JSON.parse(readFileSync(path.join(folder, "message.json"), "utf8")) as MessageState[];
}

/** A result of a call that was made in the run before: whoever sees one run only has to make the call. */
const OF_THE_RUN_BEFORE = "ag-ui/front-end-tool";

describe("a run read in streaming-engine is the same message as in runwire", () => {
  test.each(cases().filter(({ name }) => name !== OF_THE_RUN_BEFORE))("$name", ({ folder }) => {
    expect(handled(lines(path.join(folder, "streaming-engine.ndjson")))).toEqual(expected(folder));
  });

  test(`${OF_THE_RUN_BEFORE}, but for a call of the run before`, () => {
    const { folder } = cases().find(({ name }) => name === OF_THE_RUN_BEFORE) ?? { folder: "" };
    const [first, second] = handled(lines(path.join(folder, "streaming-engine.ndjson")));
    expect([first, { ...second, toolCalls: [] }]).toEqual(expected(folder));
  });
});

describe("what StreamingEngine itself sends gives the expected message", () => {
  test.each(cases("streaming-engine"))("$name", ({ folder }) => {
    const told = handled(lines(path.join(folder, "input.ndjson")));
    // Frames without ids name no run; the server then mints one.
    expect(told.map((message) => (message.messageId === "" ? named(message) : message))).toEqual(expected(folder));
  });
});

function named(message: MessageState): MessageState {
  return { ...message, messageId: "run-1", metadata: { ...message.metadata, requestId: "run-1" } };
}

/** Hands frames over one by one, and gives the handler. */
function after(...frames: HandledEvent[]): MessageStreamHandler {
  const handler = new MessageStreamHandler();
  for (const frame of frames) handler.handleEvent(frame);
  return handler;
}

const START: HandledEvent = { type: "session_start", data: { session_id: "s", request_id: "r" }, metadata: { timestamp: 1, sequence: 0 } };
const FATAL: HandledEvent = { type: "error", data: { error_type: "timeout", message: "no answer", recoverable: false }, metadata: { request_id: "r" } };

describe("errors", () => {
  test("a fatal error is shown at once, before the session ends", () => {
    expect(after(START, FATAL).message).toMatchObject({ hasError: true, errorMessage: "no answer", isStreaming: true, status: "running", notices: [] });
  });

  test("a session that ends with an error keeps its message", () => {
    const { message } = after(START, FATAL, { type: "session_end", data: { status: "error" } });
    expect(message).toMatchObject({ hasError: true, errorMessage: "no answer", isStreaming: false, status: "failed" });
  });

  test("an error without `recoverable` is fatal, as the engine's own default is", () => {
    expect(after(START, { type: "error", data: { error_type: "system", message: "out of memory" } }).message.hasError).toBe(true);
  });

  test.each<[string, HandledEvent]>([
    ["flat", { type: "error", message: "no answer" }],
    ["nested", { type: "error", data: { message: "no answer" } }],
  ])("an older error that is followed by done is shown (%s)", (_, error) => {
    const handler = after({ type: "token", content: "Let me see" }, error);
    expect(handler.message).toMatchObject({ hasError: true, errorMessage: "no answer", isStreaming: true });
    handler.handleEvent({ type: "done" });
    expect(handler.message).toMatchObject({ hasError: true, errorMessage: "no answer", isStreaming: false });
  });

  test("a recoverable error is a notice, and the message has no error", () => {
    const { message } = after(START, { type: "error", data: { error_type: "timeout", message: "trying again", recoverable: true } });
    expect(message.hasError).toBe(false);
    expect(message).not.toHaveProperty("errorMessage");
    expect(message.notices).toEqual([{ level: "error", message: "trying again" }]);
  });
});

test("a call keeps what it said of its progress last", () => {
  const progress = (percent: number, message: string): HandledEvent => ({ type: "tool_call_progress", data: { tool_id: "c", progress: percent, message } });
  const handler = after(START, { type: "tool_call_start", data: { tool_id: "c", tool_name: "fetch", arguments: {} } }, progress(10, "connecting"));
  expect(handler.message.toolCalls[0]).toMatchObject({ progress: 10, progressMessage: "connecting" });
  handler.handleEvent(progress(40, "reading"));
  expect(handler.message.toolCalls[0]).toMatchObject({ progress: 40, progressMessage: "reading" });
  handler.handleEvent(progress(60, ""));
  expect(handler.message.toolCalls[0]).not.toHaveProperty("progressMessage");
});

test("the marker of a stream that has caught up is no frame of StreamingEngine", () => {
  const handler = after({ type: "caught-up" });
  handler.handleEnd();
  expect(handler.message.status).toBe("pending");
});
