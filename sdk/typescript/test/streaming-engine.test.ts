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
