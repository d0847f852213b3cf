import { execFile } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, expectTypeOf, test } from "vitest";
import type { AgUi, DialectFrames, EasyflowChat, Loom, LoomExport, StreamingEngine } from "../src/dialects/index.js";
import { type EventOf, type HandledEvent, MessageStreamHandler, type RunwireEvent } from "../src/index.js";
import { VECTORS } from "./server.js";
import { vectors, lines } from "./vectors.js";

const HERE = path.dirname(fileURLToPath(import.meta.url));
const FOLDER = path.join(HERE, ".types");
const COMPILER = path.join(HERE, "../node_modules/typescript/bin/tsc");
const OPTIONS = ["--ignoreConfig", "--noEmit", "--strict", "--exactOptionalPropertyTypes", "--target", "es2022", "--module", "nodenext", "--types", "", "--pretty", "false"];

type Value = Record<string, unknown>;

interface Schema {
  allOf: { if: { properties?: Record<string, { const: unknown }>; required?: string[]; not?: { required: string[] } } }[];
}

interface Examples {
  valid: Value[];
  invalid: { why: string; frame: Value }[];
}

/** The dialects that have generated types. */
const DIALECTS = readdirSync(path.join(HERE, "../src/dialects")).flatMap((file) => (file === "index.ts" ? [] : [path.basename(file, ".ts")]));

/** Rules that types cannot express: ranges, patterns, integers, forbidden fields. */
const BEYOND_TYPES = /not negative|an integer|are integers|0 to 100|count.* from|lower case|one key|milliseconds and Z|in UTC|scrubbed|ui_schema|at least one|canonical event/;

function read<T>(dialect: string, file: string): T {
  return JSON.parse(readFileSync(path.join(VECTORS, dialect, file), "utf8")) as T;
}

/** Returns the frames whose type the dialect defines. */
function defined(dialect: string, frames: Value[]): Value[] {
  const { allOf } = read<Schema>(dialect, "schema.json");
  const fits = (frame: Value, { properties = {}, required = [], not }: Schema["allOf"][number]["if"]): boolean =>
    Object.entries(properties).every(([name, member]) => frame[name] === member.const) &&
    required.every((name) => name in frame) &&
    not?.required.every((name) => name in frame) !== true;
  return frames.filter((frame) => allOf.some((kind) => fits(frame, kind.if)));
}

/** Returns the frames that the server encodes for the vectors of other dialects. */
function written(dialect: string): Value[] {
  return vectors().flatMap(({ name, folder }) => {
    if (name.startsWith(`${dialect}/`)) return [];
    const file = path.join(folder, dialect);
    if (existsSync(`${file}.ndjson`)) return lines<Value>(`${file}.ndjson`);
    const data = readFileSync(`${file}.sse`, "utf8").matchAll(/^data: (.*)$/gm);
    return [...data].map(([, text]) => JSON.parse(text ?? "") as Value);
  });
}

const SETS = DIALECTS.map((dialect) => {
  const { valid, invalid } = read<Examples>(dialect, "schema.examples.json");
  const examples = valid.map((example) => ("why" in example ? (example["frame"] as Value) : example));
  return { dialect, valid: defined(dialect, examples), written: defined(dialect, written(dialect)), invalid };
});

/** Indexes of the frames that the compiler rejects as literals of their dialect's type, by file. */
const rejections = new Map<string, Set<number>>();

beforeAll(async () => {
  mkdirSync(FOLDER, { recursive: true });
  const files = SETS.flatMap(({ dialect, valid, written, invalid }) => {
    const head = `import type { DialectFrames } from "../../src/dialects/index.js"; declare function take<F extends DialectFrames["${dialect}"]>(frame: F): void;`;
    return Object.entries({ valid, written, invalid: invalid.map(({ frame }) => frame) }).map(([name, frames]) => {
      rejections.set(`${name}.${dialect}`, new Set());
      const file = path.join(FOLDER, `${name}.${dialect}.ts`);
      writeFileSync(file, [head, ...frames.map((frame) => `take(${JSON.stringify(frame)});`)].join("\n"));
      return file;
    });
  });
  const output = await new Promise<string>((resolve) => {
    execFile(process.execPath, [COMPILER, ...OPTIONS, ...files], { maxBuffer: 64 * 1024 * 1024 }, (_, stdout, stderr) => resolve(stdout + stderr));
  });
  for (const message of output.split("\n").filter((line) => /^\S.*error/.test(line))) {
    const [, file, line] = /([\w.-]+)\.ts\((\d+),\d+\): error/.exec(message) ?? [];
    const rejected = rejections.get(file ?? "");
    expect(rejected, message).toBeDefined();
    rejected?.add(Number(line) - 2);
  }
});

afterAll(() => {
  rmSync(FOLDER, { recursive: true, force: true });
});

describe.each(SETS)("$dialect", ({ dialect, valid, written, invalid }) => {
  const isRejected = (name: string) => (_: unknown, at: number): boolean => rejections.get(`${name}.${dialect}`)?.has(at) === true;

  test("its type accepts every frame that the schema accepts", () => {
    expect(valid.length).toBeGreaterThan(10);
    expect(valid.filter(isRejected("valid"))).toEqual([]);
  });

  test("its type accepts every frame that the server writes", () => {
    expect(written.length).toBeGreaterThan(100);
    expect(written.filter(isRejected("written"))).toEqual([]);
  });

  test("its type rejects what the schema rejects, as far as types can express it", () => {
    const missed = invalid.filter((_, at) => !isRejected("invalid")(_, at)).map(({ why }) => why);
    expect(missed.filter((why) => !BEYOND_TYPES.test(why))).toEqual([]);
  });
});

describe("types", () => {
  test("DialectFrames has every dialect except runwire and text", () => {
    expectTypeOf<keyof DialectFrames>().toEqualTypeOf<"ag-ui" | "agio" | "easyflow-chat" | "loom" | "loom-export" | "social-app" | "streaming-engine">();
    expect(DIALECTS.length).toBe(7);
  });

  test("`type` discriminates the frames of a stream", () => {
    const describeFrame = (frame: StreamingEngine.Frame): string => {
      switch (frame.type) {
        case "content":
          expectTypeOf(frame.data.format).toEqualTypeOf<"markdown" | "text" | "html" | undefined>();
          return frame.data.content;
        case "tool_call_end":
          return frame.data.status === "failed" ? (frame.data.error?.message ?? "") : "";
        default:
          return frame.type;
      }
    };
    expect(describeFrame({ type: "content", data: { content: "Hi" }, metadata: { request_id: "r", timestamp: 0, sequence: 0 } })).toBe("Hi");
    expectTypeOf<Extract<AgUi.Frame, { type: "TEXT_MESSAGE_CONTENT" }>["delta"]>().toEqualTypeOf<string>();
    expectTypeOf<Extract<EasyflowChat.Frame, { domain: "system"; type: "error" }>>().toEqualTypeOf<EasyflowChat.SystemErrorFrame>();
  });

  test("a reply of loom and the single key of loom-export discriminate frames", () => {
    const reply = (frame: Loom.Frame): string => (frame.type === undefined ? frame.reply : frame.type);
    expect(reply({ reply: "Hello" })).toBe("Hello");
    const name = (frame: LoomExport.Frame): string | undefined => ("TaskStart" in frame ? frame.TaskStart.node_id : undefined);
    expect(name({ TaskStart: { node_id: "think" } })).toBe("think");
  });

  test("a stream yields the frames of its dialect", () => {
    expectTypeOf<EventOf<"streaming-engine">>().toEqualTypeOf<StreamingEngine.Frame>();
    expectTypeOf<EventOf<"loom">>().toEqualTypeOf<Loom.Frame>();
    expectTypeOf<EventOf<"runwire">>().toEqualTypeOf<RunwireEvent>();
  });

  test("the handler accepts documented frames, legacy frames and events, and nothing else", () => {
    expectTypeOf<StreamingEngine.Frame>().toExtend<HandledEvent>();
    expectTypeOf<RunwireEvent>().toExtend<HandledEvent>();
    const handler = new MessageStreamHandler();
    // @ts-expect-error a typo in the type
    handler.handleEvent({ type: "contents", data: { content: "" } });
    // @ts-expect-error a stage that the document does not have
    handler.handleEvent({ type: "thinking", data: { content: "", stage: "dreaming" } });
    // @ts-expect-error the call's id is missing
    handler.handleEvent({ type: "tool_call_start", data: { tool_name: "fetch", arguments: {} } });
    // @ts-expect-error another dialect's frame
    handler.handleEvent({ type: "RUN_STARTED", threadId: "t", runId: "r" });
  });
});
