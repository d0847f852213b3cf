import { expect, test } from "vitest";
import { Aligned, lineHeight, rowSpace } from "../../src/run/events/wire/align";
import { ndjsonCutter, socketPiece, sseCutter } from "../../src/run/events/wire/cut";

const stream = 'id: 1-0\ndata: {"a":1.0}\n\nid: 2-0\nevent: message\ndata: 多\ndata: \n\n: keep-alive\nid: 41\n\n: end\n\n';

test("blocks of server-sent events are the same however the network cuts them", () => {
  const whole = sseCutter()(stream);
  expect(whole.map((piece) => [piece.cursor, piece.isBare, piece.isEnd])).toEqual([
    ["1-0", false, false],
    ["2-0", false, false],
    ["41", true, false],
    [undefined, true, true],
  ]);
  expect(whole.map((piece) => `${piece.text}\n`).join("")).toBe(stream);
  for (let size = 1; size < stream.length; size++) {
    const cut = sseCutter();
    const pieces = [];
    for (let at = 0; at < stream.length; at += size) pieces.push(...cut(stream.slice(at, at + size)));
    expect(pieces).toEqual(whole);
  }
});

test("an NDJSON line loses its wrapping and nothing else", () => {
  const cut = ndjsonCutter();
  expect(cut('{"cursor":"1-0","frame":{"n":1.50,"s":"}"}}\n\n{"cursor":"2')).toEqual([{ cursor: "1-0", text: '{"n":1.50,"s":"}"}\n' }]);
  expect(cut('-0","frame":"text"}\n')).toEqual([{ cursor: "2-0", text: '"text"\n' }]);
});

test("messages of a WebSocket stay as they are", () => {
  const frame = '{"op":"frame","id":"1","cursor":"5-1","frame":{"a":1.0}}';
  expect(socketPiece(frame)).toMatchObject({ text: frame, cursor: "5-1", isBare: false, isEnd: false });
  expect(socketPiece('{"op":"end","id":"1"}')).toMatchObject({ isBare: true, isEnd: true });
});

test("two dialects stand beside each other record by record, whichever comes first", () => {
  const aligned = new Aligned();
  const piece = (cursor: string) => ({ cursor, text: `id: ${cursor}\ndata: x` });
  aligned.add(0, [piece("1-0"), piece("3-0"), piece("3-1"), piece("9-0")]);
  aligned.add(1, [piece("2-0"), piece("3-0")]);
  aligned.add(1, [piece("9-0")]);
  expect(aligned.rows.map((row) => [row.seq, row.sides[0].length, row.sides[1].length])).toEqual([
    [1, 1, 0],
    [2, 0, 1],
    [3, 2, 1],
    [9, 1, 1],
  ]);
  const heights = [2, 2, 4, 2].map((lines) => lines * lineHeight + rowSpace);
  expect(aligned.tops).toEqual(heights.reduce((tops, height) => [...tops, (tops.at(-1) ?? 0) + height], [0]));
});

test("signs of life of a run that waits do not pile up", () => {
  const aligned = new Aligned();
  const life = { cursor: "4", text: ": keep-alive\nid: 4", isBare: true };
  aligned.add(0, [{ cursor: "4-0", text: "data: x" }, life, life, life]);
  aligned.add(0, [life]);
  expect(aligned.rows[0]?.sides[0]).toHaveLength(2);
  expect(aligned.frames[0]).toBe(1);
});
