import { execFile } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, expectTypeOf, test } from "vitest";
import type { AgUi, DialectFrames, EasyflowChat, Loom, LoomExport, StreamingEngine } from "../src/dialects/index.js";
import { type EventOf, type HandledEvent, MessageStreamHandler, type RunwireEvent } from "../src/index.js";
import { VECTORS } from "./server.js";
import { cases, lines } from "./vectors.js";

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

/** Every dialect that has types of its own. */
const DIALECTS = readdirSync(path.join(HERE, "../src/dialects")).flatMap((file) => (file === "index.ts" ? [] : [path.basename(file, ".ts")]));

/** What no type can say: ranges, patterns, whole numbers, fields that must not be there. */
const BEYOND_TYPES = /not negative|an integer|are integers|0 to 100|count.* from|lower case|one key|milliseconds and Z|in UTC|scrubbed|ui_schema|at least one|canonical event/;

function read<T>(dialect: string, file: string): T {
  return JSON.parse(readFileSync(path.join(VECTORS, dialect, file), "utf8")) as T;
}

/** Gives the frames of the kinds that their dialect defines. */
function defined(dialect: string, frames: Value[]): Value[] {
  const { allOf } = read<Schema>(dialect, "schema.json");
  const fits = (frame: Value, { properties = {}, required = [], not }: Schema["allOf"][number]["if"]): boolean =>
    Object.entries(properties).every(([name, member]) => frame[name] === member.const) &&
    required.every((name) => name in frame) &&
    not?.required.every((name) => name in frame) !== true;
  return frames.filter((frame) => allOf.some((kind) => fits(frame, kind.if)));
}

/** Gives the frames that are written for the vectors of other dialects: those of a producer's own stay as they came. */
function written(dialect: string): Value[] {
  return cases().flatMap(({ name, folder }) => {
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

/** The frames that the compiler refuses as literals of their dialect's type, by the file that they stand in. */
const refusals = new Map<string, Set<number>>();

beforeAll(async () => {
  mkdirSync(FOLDER, { recursive: true });
  const files = SETS.flatMap(({ dialect, valid, written, invalid }) => {
    const head = `import type { DialectFrames } from "../../src/dialects/index.js"; declare function take<F extends DialectFrames["${dialect}"]>(frame: F): void;`;
    return Object.entries({ valid, written, invalid: invalid.map(({ frame }) => frame) }).map(([name, frames]) => {
      refusals.set(`${name}.${dialect}`, new Set());
      const file = path.join(FOLDER, `${name}.${dialect}.ts`);
      writeFileSync(file, [head, ...frames.map((frame) => `take(${JSON.stringify(frame)});`)].join("\n"));
      return file;
    });
  });
  const output = await new Promise<string>((resolve) => {
    execFile(process.execPath, [COMPILER, ...OPTIONS, ...files], { maxBuffer: 64 * 1024 * 1024 }, (_, stdout, stderr) => resolve(stdout + stderr));
  });
  for (const line of output.split("\n").filter((line) => /^\S.*error/.test(line))) {
    const [, file, place] = /([\w.-]+)\.ts\((\d+),\d+\): error/.exec(line) ?? [];
    const refused = refusals.get(file ?? "");
    expect(refused, line).toBeDefined();
    refused?.add(Number(place) - 2);
  }
});

afterAll(() => {
  rmSync(FOLDER, { recursive: true, force: true });
});

describe.each(SETS)("$dialect", ({ dialect, valid, written, invalid }) => {
  const isRefused = (name: string) => (_: unknown, at: number): boolean => refusals.get(`${name}.${dialect}`)?.has(at) === true;

  test("its type takes every frame that the schema takes", () => {
    expect(valid.length).toBeGreaterThan(10);
    expect(valid.filter(isRefused("valid"))).toEqual([]);
  });

  test("its type takes every frame that the server writes", () => {
    expect(written.length).toBeGreaterThan(100);
    expect(written.filter(isRefused("written"))).toEqual([]);
  });

  test("its type refuses what the schema refuses, as far as types can tell", () => {
    const missed = invalid.filter((_, at) => !isRefused("invalid")(_, at)).map(({ why }) => why);
    expect(missed.filter((why) => !BEYOND_TYPES.test(why))).toEqual([]);
  });
});

describe("types", () => {
  test("every dialect but runwire and text is in the table", () => {
    expectTypeOf<keyof DialectFrames>().toEqualTypeOf<"ag-ui" | "agio" | "easyflow-chat" | "loom" | "loom-export" | "social-app" | "streaming-engine">();
    expect(DIALECTS.length).toBe(7);
  });

  test("`type` tells the frames of a stream apart", () => {
    const told = (frame: StreamingEngine.Frame): string => {
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
    expect(told({ type: "content", data: { content: "Hi" }, metadata: { request_id: "r", timestamp: 0, sequence: 0 } })).toBe("Hi");
    expectTypeOf<Extract<AgUi.Frame, { type: "TEXT_MESSAGE_CONTENT" }>["delta"]>().toEqualTypeOf<string>();
    expectTypeOf<Extract<EasyflowChat.Frame, { domain: "system"; type: "error" }>>().toEqualTypeOf<EasyflowChat.SystemErrorFrame>();
  });

  test("a reply of loom and the one key of loom-export tell frames apart", () => {
    const reply = (frame: Loom.Frame): string => (frame.type === undefined ? frame.reply : frame.type);
    expect(reply({ reply: "Hello" })).toBe("Hello");
    const name = (frame: LoomExport.Frame): string | undefined => ("TaskStart" in frame ? frame.TaskStart.node_id : undefined);
    expect(name({ TaskStart: { node_id: "think" } })).toBe("think");
  });

  test("a stream hands out the frames of its dialect", () => {
    expectTypeOf<EventOf<"streaming-engine">>().toEqualTypeOf<StreamingEngine.Frame>();
    expectTypeOf<EventOf<"loom">>().toEqualTypeOf<Loom.Frame>();
    expectTypeOf<EventOf<"runwire">>().toEqualTypeOf<RunwireEvent>();
  });

  test("the handler takes the document's frames, older ones and events, and nothing else", () => {
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
