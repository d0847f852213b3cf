import { describe, expect, it } from "vitest";
import { readData } from "../../src/run/data";
import { asTable, readChart, scaleOf, thinned } from "../../src/run/data/chart";
import { readPicture } from "../../src/run/data/image";
import { asLines, nextOrder, readTable, sorted } from "../../src/run/data/table";

describe("tables", () => {
  const table = readTable({ name: "T", columns: ["City", "Rain %"], rows: [["b", 10], ["A", 9], ["c", null], ["a10", 100], ["a9", 0]] });

  it("cells, objects and lists of objects are tables alike", () => {
    const rows = [["x", 1]];
    expect(readTable({ columns: ["a", "b"], rows })?.rows).toEqual(rows);
    expect(readTable({ columns: [{ key: "a", title: "A" }, { field: "b" }], rows: [{ a: "x", b: 1 }] })?.rows).toEqual(rows);
    expect(readTable([{ a: "x", b: 1 }])?.rows).toEqual(rows);
    expect(readTable({ columns: ["a", "b"], data: rows })?.rows).toEqual(rows);
    expect(readTable({ anything: 1 })).toBeUndefined();
    expect(readTable([1, 2])).toBeUndefined();
  });

  it("a column of numbers is known as one", () => {
    expect(table?.columns).toEqual([{ title: "City", numeric: false }, { title: "Rain %", numeric: true }]);
  });

  it("numbers sort by size, words as people sort them, and what is missing comes last either way", () => {
    const rows = table?.rows ?? [];
    const column = (index: number, order: Parameters<typeof sorted>[1]) => sorted(rows, order).map((row) => row[index]);
    expect(column(1, { column: 1, down: false })).toEqual([0, 9, 10, 100, null]);
    expect(column(1, { column: 1, down: true })).toEqual([100, 10, 9, 0, null]);
    expect(column(0, { column: 0, down: false })).toEqual(["A", "a9", "a10", "b", "c"]);
    expect(column(0, undefined)).toEqual(["b", "A", "c", "a10", "a9"]);
  });

  it("a head sorts up, down, and back", () => {
    const up = nextOrder(undefined, 1);
    const down = nextOrder(up, 1);
    expect([up, down, nextOrder(down, 1), nextOrder(down, 0)]).toEqual([
      { column: 1, down: false },
      { column: 1, down: true },
      undefined,
      { column: 0, down: false },
    ]);
  });

  it("a copied table is lines of cells", () => {
    expect(table && asLines({ ...table, rows: [["a\tb", 1]] })).toBe("City\tRain %\na b\t1");
  });
});

describe("charts", () => {
  const data = { type: "line", name: "N", labels: ["a", "b"], series: [{ name: "High", data: [1, null] }] };

  it("series and datasets are charts alike, and the same numbers are a table", () => {
    const chart = readChart(data);
    expect(chart).toMatchObject({ kind: "line", labels: ["a", "b"], series: [{ name: "High", values: [1, null] }] });
    expect(readChart({ type: "doughnut", data: { labels: ["a"], datasets: [{ label: "x", data: [{ y: 2 }] }] } })).toMatchObject({ kind: "pie", series: [{ values: [2] }] });
    expect(chart && asTable(chart, "Label").rows).toEqual([["a", 1], ["b", null]]);
    expect(readChart({ type: "sankey", series: [] })).toBeUndefined();
  });

  it("a scale has round steps around all values", () => {
    expect(scaleOf([8, 20], false)).toEqual({ least: 5, most: 20, ticks: [5, 10, 15, 20] });
    expect(scaleOf([8, 20], true).least).toBe(0);
    expect(scaleOf([0.1, 0.3], true).ticks).toEqual([0, 0.1, 0.2, 0.3]);
    expect(scaleOf([], true).ticks.length).toBeGreaterThan(1);
    expect(scaleOf([-5, -5], false).most).toBe(0);
  });

  it("very many points are thinned", () => {
    const values = Array.from({ length: 5000 }, (_, index) => index);
    const chart = readChart({ type: "line", series: [{ data: values }] });
    expect(chart && thinned(chart).labels.length).toBeLessThanOrEqual(400);
  });
});

describe("blocks of data", () => {
  it("a picture is shown only if it came with the run", () => {
    expect(readPicture("data:image/png;base64,AAAA")).toMatchObject({ inside: true });
    expect(readPicture({ url: "https://example.com/a.png", alt: "A" })).toMatchObject({ inside: false, words: "A" });
    expect(readPicture({ data: "A".repeat(80), mime_type: "image/jpeg" })?.address).toMatch(/^data:image\/jpeg;base64,/);
    expect(readPicture({ url: "javascript:alert(1)" })).toBeUndefined();
    expect(readPicture({ data: "A".repeat(80), mime_type: "text/html" })).toBeUndefined();
  });

  it("what nobody knows is JSON", () => {
    expect(readData("weather", { a: 1 }, undefined).as).toBe("json");
    expect(readData("chart", { odd: true }, undefined).as).toBe("json");
    expect(readData("dataframe", { columns: ["a"], rows: [] }, undefined).as).toBe("table");
  });
});
