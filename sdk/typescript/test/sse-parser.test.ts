import { createParser } from "eventsource-parser";
import { describe, expect, test } from "vitest";
import { ProtocolError } from "../src/index.js";
import { type SseEvent, SseParser, MAX_EVENT_LENGTH } from "../src/stream/sse-parser.js";

const STREAM =
  'id: 1-0\nevent: message\ndata: {"a":1}\n\n: keep-alive\nid: 2\n\nid: 3-0\r\ndata: 你好🌏\r\ndata:\r\n\r\n: caught-up\n\nretry: 250\n\n: end\n\nid: 4-0\ndata: cut';

const EXPECTED = [
  sseEvent({ id: "1-0", name: "message", data: '{"a":1}' }),
  sseEvent({ id: "2" }),
  sseEvent({ id: "3-0", data: "你好🌏\n" }),
  sseEvent({ isCaughtUp: true }),
  sseEvent({ retry: 250 }),
  sseEvent({ isEnd: true }),
];

function sseEvent(given: Partial<SseEvent>): SseEvent {
  return { id: undefined, name: undefined, data: undefined, retry: undefined, isCaughtUp: false, isEnd: false, ...given };
}

/** Parses bytes that arrive in chunks, as a connection does. */
function parse(chunks: Iterable<Uint8Array>): SseEvent[] {
  const [parser, decoder] = [new SseParser(), new TextDecoder()];
  const found: SseEvent[] = [];
  for (const chunk of chunks) {
    parser.push(decoder.decode(chunk, { stream: true }));
    for (let next = parser.next(); next !== undefined; next = parser.next()) found.push(next);
  }
  return found;
}

function* inChunksOf(size: number, bytes: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

/** Pseudo-random numbers from a fixed seed. */
function* numbers(seed: number): Generator<number, never> {
  for (let state = seed; ; ) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    yield state / 2 ** 32;
  }
}

describe("events are returned complete", () => {
  const bytes = new TextEncoder().encode(STREAM);

  test("wherever the bytes are split", () => {
    for (let size = 1; size <= bytes.length; size++) expect(parse(inChunksOf(size, bytes)), `in chunks of ${size}`).toEqual(EXPECTED);
    for (let at = 0; at <= bytes.length; at++) expect(parse([bytes.subarray(0, at), bytes.subarray(at)]), `split at ${at}`).toEqual(EXPECTED);
  });

  test("and an event truncated by the end of the connection is not returned", () => {
    for (let at = 0; at <= bytes.length; at++) {
      const found = parse([bytes.subarray(0, at)]);
      expect(found).toEqual(EXPECTED.slice(0, found.length));
    }
  });

  test("a long line in many chunks is joined once", () => {
    const data = "x".repeat(3_000_000);
    expect(parse(inChunksOf(1000, new TextEncoder().encode(`id: 1\ndata: ${data}\n\n`)))).toEqual([sseEvent({ id: "1", data })]);
  });
});

test("events with data are the same as those of eventsource-parser", () => {
  const lines = ["data: a", "data:b", "data", "event: e", "event:", "id: 7", "id: 7-1", ": x", ":x", "", "", "", "retry: 5", "retry: no", "other: 1", "data:  two", "中: 文"];
  const random = numbers(20_261_115);
  for (let round = 0; round < 2000; round++) {
    let text = "";
    const count = 1 + Math.floor(random.next().value * 12);
    for (let line = 0; line < count; line++) text += `${lines[Math.floor(random.next().value * lines.length)]}${random.next().value < 0.8 ? "\n" : "\r\n"}`;
    const events: unknown[] = [];
    createParser({ onEvent: ({ id, event, data }) => events.push({ id, name: event, data }) }).feed(text);
    const bytes = new TextEncoder().encode(text);
    const found = parse(inChunksOf(1 + Math.floor(random.next().value * 9), bytes)).filter((each) => each.data !== undefined);
    expect(found.map(({ id, name, data }) => ({ id, name, data })), JSON.stringify(text)).toEqual(events);
  }
});

test("random bytes cause a ProtocolError, or no error", () => {
  const random = numbers(7);
  for (let round = 0; round < 2000; round++) {
    const bytes = Uint8Array.from({ length: 60 }, () => [10, 13, 58, 32, 100, 97, 116, 105, 0, 255, 226][Math.floor(random.next().value * 11)] as number);
    try {
      parse(inChunksOf(3, bytes));
    } catch (error) {
      expect(error).toBeInstanceOf(ProtocolError);
    }
  }
});

test("an invalid cursor and an event that is too long are refused", () => {
  expect(() => parse([new TextEncoder().encode("id: soon\ndata: x\n\n")])).toThrow(ProtocolError);
  const parser = new SseParser();
  const chunk = "x".repeat(1 << 20);
  expect(() => {
    for (let size = 0; size <= MAX_EVENT_LENGTH; size += chunk.length) {
      parser.push(chunk);
      expect(parser.next()).toBeUndefined();
    }
  }).toThrow(ProtocolError);
});
