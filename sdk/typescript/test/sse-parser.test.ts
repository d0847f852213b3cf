import { createParser } from "eventsource-parser";
import { describe, expect, test } from "vitest";
import { ProtocolError } from "../src/index.js";
import { type SseEvent, SseParser, MAX_EVENT_LENGTH } from "../src/stream/sse-parser.js";

const STREAM =
  'id: 1-0\nevent: message\ndata: {"a":1}\n\n: keep-alive\nid: 2\n\nid: 3-0\r\ndata: 你好🌏\r\ndata:\r\n\r\n: caught-up\n\nretry: 250\n\n: end\n\nid: 4-0\ndata: cut';

const EXPECTED = [
  block({ id: "1-0", name: "message", data: '{"a":1}' }),
  block({ id: "2" }),
  block({ id: "3-0", data: "你好🌏\n" }),
  block({ isCaughtUp: true }),
  block({ retry: 250 }),
  block({ isEnd: true }),
];

function block(given: Partial<SseEvent>): SseEvent {
  return { id: undefined, name: undefined, data: undefined, retry: undefined, isCaughtUp: false, isEnd: false, ...given };
}

/** Cuts bytes that arrive in pieces, as a connection does. */
function cut(pieces: Iterable<Uint8Array>): SseEvent[] {
  const [parser, decoder] = [new SseParser(), new TextDecoder()];
  const found: SseEvent[] = [];
  for (const piece of pieces) {
    parser.push(decoder.decode(piece, { stream: true }));
    for (let next = parser.next(); next !== undefined; next = parser.next()) found.push(next);
  }
  return found;
}

function* inPiecesOf(size: number, bytes: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

/** Numbers that look random and are the same in every run. */
function* numbers(seed: number): Generator<number, never> {
  for (let state = seed; ; ) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    yield state / 2 ** 32;
  }
}

describe("events are handed out whole", () => {
  const bytes = new TextEncoder().encode(STREAM);

  test("wherever the bytes are cut", () => {
    for (let size = 1; size <= bytes.length; size++) expect(cut(inPiecesOf(size, bytes)), `in pieces of ${size}`).toEqual(EXPECTED);
    for (let at = 0; at <= bytes.length; at++) expect(cut([bytes.subarray(0, at), bytes.subarray(at)]), `cut at ${at}`).toEqual(EXPECTED);
  });

  test("and what the end of a connection cuts off is not handed out", () => {
    for (let at = 0; at <= bytes.length; at++) {
      const found = cut([bytes.subarray(0, at)]);
      expect(found).toEqual(EXPECTED.slice(0, found.length));
    }
  });

  test("a long line in many pieces is put together once", () => {
    const data = "x".repeat(3_000_000);
    expect(cut(inPiecesOf(1000, new TextEncoder().encode(`id: 1\ndata: ${data}\n\n`)))).toEqual([block({ id: "1", data })]);
  });
});

test("events with data are what another parser finds in the same text", () => {
  const lines = ["data: a", "data:b", "data", "event: e", "event:", "id: 7", "id: 7-1", ": x", ":x", "", "", "", "retry: 5", "retry: no", "other: 1", "data:  two", "中: 文"];
  const random = numbers(20_261_115);
  for (let round = 0; round < 2000; round++) {
    let text = "";
    const count = 1 + Math.floor(random.next().value * 12);
    for (let line = 0; line < count; line++) text += `${lines[Math.floor(random.next().value * lines.length)]}${random.next().value < 0.8 ? "\n" : "\r\n"}`;
    const events: unknown[] = [];
    createParser({ onEvent: ({ id, event, data }) => events.push({ id, name: event, data }) }).feed(text);
    const bytes = new TextEncoder().encode(text);
    const found = cut(inPiecesOf(1 + Math.floor(random.next().value * 9), bytes)).filter((each) => each.data !== undefined);
    expect(found.map(({ id, name, data }) => ({ id, name, data })), JSON.stringify(text)).toEqual(events);
  }
});

test("bytes that mean nothing reach an error of ours, or nothing", () => {
  const random = numbers(7);
  for (let round = 0; round < 2000; round++) {
    const bytes = Uint8Array.from({ length: 60 }, () => [10, 13, 58, 32, 100, 97, 116, 105, 0, 255, 226][Math.floor(random.next().value * 11)] as number);
    try {
      cut(inPiecesOf(3, bytes));
    } catch (error) {
      expect(error).toBeInstanceOf(ProtocolError);
    }
  }
});

test("what no server sends is refused", () => {
  expect(() => cut([new TextEncoder().encode("id: soon\ndata: x\n\n")])).toThrow(ProtocolError);
  const parser = new SseParser();
  const piece = "x".repeat(1 << 20);
  expect(() => {
    for (let size = 0; size <= MAX_EVENT_LENGTH; size += piece.length) {
      parser.push(piece);
      expect(parser.next()).toBeUndefined();
    }
  }).toThrow(ProtocolError);
});
