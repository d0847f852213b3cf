import { expect, test } from "vitest";
import { AlignedRecords, lineHeight, rowPadding } from "../../src/run/events/wire/AlignedRecords";
import { ndjsonSplitter, parseSocketMessage, sseSplitter } from "../../src/run/events/wire/splitFrames";

const stream = 'id: 1-0\ndata: {"a":1.0}\n\nid: 2-0\nevent: message\ndata: 多\ndata: \n\n: keep-alive\nid: 41\n\n: end\n\n';

test("blocks of server-sent events do not depend on the chunks", () => {
  const expected = sseSplitter()(stream);
  expect(expected.map((frame) => [frame.cursor, frame.isControl, frame.isEnd])).toEqual([
    ["1-0", false, false],
    ["2-0", false, false],
    ["41", true, false],
    [undefined, true, true],
  ]);
  expect(expected.map((frame) => `${frame.text}\n`).join("")).toBe(stream);
  for (let size = 1; size < stream.length; size++) {
    const split = sseSplitter();
    const frames = [];
    for (let at = 0; at < stream.length; at += size) frames.push(...split(stream.slice(at, at + size)));
    expect(frames).toEqual(expected);
  }
});

test("an NDJSON line loses only its wrapper", () => {
  const split = ndjsonSplitter();
  expect(split('{"cursor":"1-0","frame":{"n":1.50,"s":"}"}}\n\n{"cursor":"2')).toEqual([{ cursor: "1-0", text: '{"n":1.50,"s":"}"}\n' }]);
  expect(split('-0","frame":"text"}\n')).toEqual([{ cursor: "2-0", text: '"text"\n' }]);
});

test("messages of a WebSocket are unchanged", () => {
  const frame = '{"op":"frame","id":"1","cursor":"5-1","frame":{"a":1.0}}';
  expect(parseSocketMessage(frame)).toMatchObject({ text: frame, cursor: "5-1", isControl: false, isEnd: false });
  expect(parseSocketMessage('{"op":"end","id":"1"}')).toMatchObject({ isControl: true, isEnd: true });
});

test("two dialects are aligned by record in any order of arrival", () => {
  const records = new AlignedRecords();
  const frame = (cursor: string) => ({ cursor, text: `id: ${cursor}\ndata: x` });
  records.add(0, [frame("1-0"), frame("3-0"), frame("3-1"), frame("9-0")]);
  records.add(1, [frame("2-0"), frame("3-0")]);
  records.add(1, [frame("9-0")]);
  expect(records.rows.map((row) => [row.seq, row.sides[0].length, row.sides[1].length])).toEqual([
    [1, 1, 0],
    [2, 0, 1],
    [3, 2, 1],
    [9, 1, 1],
  ]);
  const heights = [2, 2, 4, 2].map((lines) => lines * lineHeight + rowPadding);
  expect(records.tops).toEqual(heights.reduce((tops, height) => [...tops, (tops.at(-1) ?? 0) + height], [0]));
});

test("repeated keep-alives are dropped", () => {
  const records = new AlignedRecords();
  const keepAlive = { cursor: "4", text: ": keep-alive\nid: 4", isControl: true };
  records.add(0, [{ cursor: "4-0", text: "data: x" }, keepAlive, keepAlive, keepAlive]);
  records.add(0, [keepAlive]);
  expect(records.rows[0]?.sides[0]).toHaveLength(2);
  expect(records.frames[0]).toBe(1);
});
