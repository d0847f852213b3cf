import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { type HandledEvent, MessageStreamHandler, type MessageState } from "../src/index.js";
import { vectors, lines } from "./vectors.js";

/** Fields that identify the run of a frame. */
interface Ids {
  data?: { request_id?: string };
  metadata?: { request_id?: string };
}

/** Folds frames of StreamingEngine with one handler per run. */
function foldByRun(frames: (HandledEvent & Ids)[]): MessageState[] {
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

/** A vector with the result of a call of the previous run, which a handler of one run has to create. */
const CALL_OF_PREVIOUS_RUN = "ag-ui/front-end-tool";

describe("a run in streaming-engine folds to the same message as in runwire", () => {
  test.each(vectors().filter(({ name }) => name !== CALL_OF_PREVIOUS_RUN))("$name", ({ folder }) => {
    expect(foldByRun(lines(path.join(folder, "streaming-engine.ndjson")))).toEqual(expected(folder));
  });

  test(`${CALL_OF_PREVIOUS_RUN}, except for a call of the previous run`, () => {
    const { folder } = vectors().find(({ name }) => name === CALL_OF_PREVIOUS_RUN) ?? { folder: "" };
    const [first, second] = foldByRun(lines(path.join(folder, "streaming-engine.ndjson")));
    expect([first, { ...second, toolCalls: [] }]).toEqual(expected(folder));
  });
});

describe("native frames of StreamingEngine fold to the expected message", () => {
  test.each(vectors("streaming-engine"))("$name", ({ folder }) => {
    const messages = foldByRun(lines(path.join(folder, "input.ndjson")));
    // For frames without an id, the server generates a run id.
    expect(messages.map((message) => (message.messageId === "" ? withRunId(message) : message))).toEqual(expected(folder));
  });
});

function withRunId(message: MessageState): MessageState {
  return { ...message, messageId: "run-1", metadata: { ...message.metadata, requestId: "run-1" } };
}

/** Returns a handler after it has handled the frames. */
function handlerAfter(...frames: HandledEvent[]): MessageStreamHandler {
  const handler = new MessageStreamHandler();
  for (const frame of frames) handler.handleEvent(frame);
  return handler;
}

const START: HandledEvent = { type: "session_start", data: { session_id: "s", request_id: "r" }, metadata: { timestamp: 1, sequence: 0 } };
const FATAL: HandledEvent = { type: "error", data: { error_type: "timeout", message: "no answer", recoverable: false }, metadata: { request_id: "r" } };

describe("errors", () => {
  test("a fatal error is shown at once, before the session ends", () => {
    expect(handlerAfter(START, FATAL).message).toMatchObject({ hasError: true, errorMessage: "no answer", isStreaming: true, status: "running", notices: [] });
  });

  test("a session that ends with an error keeps its message", () => {
    const { message } = handlerAfter(START, FATAL, { type: "session_end", data: { status: "error" } });
    expect(message).toMatchObject({ hasError: true, errorMessage: "no answer", isStreaming: false, status: "failed" });
  });

  test("an error without `recoverable` is fatal, like the engine's default", () => {
    expect(handlerAfter(START, { type: "error", data: { error_type: "system", message: "out of memory" } }).message.hasError).toBe(true);
  });

  test.each<[string, HandledEvent]>([
    ["flat", { type: "error", message: "no answer" }],
    ["nested", { type: "error", data: { message: "no answer" } }],
  ])("a legacy error followed by done is shown (%s)", (_, error) => {
    const handler = handlerAfter({ type: "token", content: "Let me see" }, error);
    expect(handler.message).toMatchObject({ hasError: true, errorMessage: "no answer", isStreaming: true });
    handler.handleEvent({ type: "done" });
    expect(handler.message).toMatchObject({ hasError: true, errorMessage: "no answer", isStreaming: false });
  });

  test("a recoverable error is a notice, and the message has no error", () => {
    const { message } = handlerAfter(START, { type: "error", data: { error_type: "timeout", message: "trying again", recoverable: true } });
    expect(message.hasError).toBe(false);
    expect(message).not.toHaveProperty("errorMessage");
    expect(message.notices).toEqual([{ level: "error", message: "trying again" }]);
  });
});

test("a call keeps its last progress and message", () => {
  const progress = (percent: number, message: string): HandledEvent => ({ type: "tool_call_progress", data: { tool_id: "c", progress: percent, message } });
  const handler = handlerAfter(START, { type: "tool_call_start", data: { tool_id: "c", tool_name: "fetch", arguments: {} } }, progress(10, "connecting"));
  expect(handler.message.toolCalls[0]).toMatchObject({ progress: 10, progressMessage: "connecting" });
  handler.handleEvent(progress(40, "reading"));
  expect(handler.message.toolCalls[0]).toMatchObject({ progress: 40, progressMessage: "reading" });
  handler.handleEvent(progress(60, ""));
  expect(handler.message.toolCalls[0]).not.toHaveProperty("progressMessage");
});

test("the caught-up marker is not a frame of StreamingEngine", () => {
  const handler = handlerAfter({ type: "caught-up" });
  handler.handleEnd();
  expect(handler.message.status).toBe("pending");
});
