import { describe, expect, it } from "vitest";
import { parseData } from "../../src/run/data";
import { chartToTable, parseChart, scaleOf, downsample } from "../../src/run/data/parseChart";
import { parseImage } from "../../src/run/data/parseImage";
import { toTsv, nextSortOrder, parseTable, sortRows } from "../../src/run/data/parseTable";

describe("tables", () => {
  const table = parseTable({ name: "T", columns: ["City", "Rain %"], rows: [["b", 10], ["A", 9], ["c", null], ["a10", 100], ["a9", 0]] });

  it("cells, objects and lists of objects are parsed as tables", () => {
    const rows = [["x", 1]];
    expect(parseTable({ columns: ["a", "b"], rows })?.rows).toEqual(rows);
    expect(parseTable({ columns: [{ key: "a", title: "A" }, { field: "b" }], rows: [{ a: "x", b: 1 }] })?.rows).toEqual(rows);
    expect(parseTable([{ a: "x", b: 1 }])?.rows).toEqual(rows);
    expect(parseTable({ columns: ["a", "b"], data: rows })?.rows).toEqual(rows);
    expect(parseTable({ anything: 1 })).toBeUndefined();
    expect(parseTable([1, 2])).toBeUndefined();
  });

  it("a column of numbers is numeric", () => {
    expect(table?.columns).toEqual([{ title: "City", numeric: false }, { title: "Rain %", numeric: true }]);
  });

  it("numbers sort by value, texts by locale, missing cells always last", () => {
    const rows = table?.rows ?? [];
    const column = (index: number, order: Parameters<typeof sortRows>[1]) => sortRows(rows, order).map((row) => row[index]);
    expect(column(1, { column: 1, isDescending: false })).toEqual([0, 9, 10, 100, null]);
    expect(column(1, { column: 1, isDescending: true })).toEqual([100, 10, 9, 0, null]);
    expect(column(0, { column: 0, isDescending: false })).toEqual(["A", "a9", "a10", "b", "c"]);
    expect(column(0, undefined)).toEqual(["b", "A", "c", "a10", "a9"]);
  });

  it("a column header toggles ascending, descending and no order", () => {
    const ascending = nextSortOrder(undefined, 1);
    const descending = nextSortOrder(ascending, 1);
    expect([ascending, descending, nextSortOrder(descending, 1), nextSortOrder(descending, 0)]).toEqual([
      { column: 1, isDescending: false },
      { column: 1, isDescending: true },
      undefined,
      { column: 0, isDescending: false },
    ]);
  });

  it("a copied table has tab-separated values", () => {
    expect(table && toTsv({ ...table, rows: [["a\tb", 1]] })).toBe("City\tRain %\na b\t1");
  });
});

describe("charts", () => {
  const data = { type: "line", name: "N", labels: ["a", "b"], series: [{ name: "High", data: [1, null] }] };

  it("series and datasets are parsed as charts, and convert to a table", () => {
    const chart = parseChart(data);
    expect(chart).toMatchObject({ kind: "line", labels: ["a", "b"], series: [{ name: "High", values: [1, null] }] });
    expect(parseChart({ type: "doughnut", data: { labels: ["a"], datasets: [{ label: "x", data: [{ y: 2 }] }] } })).toMatchObject({ kind: "pie", series: [{ values: [2] }] });
    expect(chart && chartToTable(chart, "Label").rows).toEqual([["a", 1], ["b", null]]);
    expect(parseChart({ type: "sankey", series: [] })).toBeUndefined();
  });

  it("a scale has round ticks around all values", () => {
    expect(scaleOf([8, 20], false)).toEqual({ min: 5, max: 20, ticks: [5, 10, 15, 20] });
    expect(scaleOf([8, 20], true).min).toBe(0);
    expect(scaleOf([0.1, 0.3], true).ticks).toEqual([0, 0.1, 0.2, 0.3]);
    expect(scaleOf([], true).ticks.length).toBeGreaterThan(1);
    expect(scaleOf([-5, -5], false).max).toBe(0);
  });

  it("a chart with very many points is downsampled", () => {
    const values = Array.from({ length: 5000 }, (_, index) => index);
    const chart = parseChart({ type: "line", series: [{ data: values }] });
    expect(chart && downsample(chart).labels.length).toBeLessThanOrEqual(400);
  });
});

describe("blocks of data", () => {
  it("only embedded images are loaded", () => {
    expect(parseImage("data:image/png;base64,AAAA")).toMatchObject({ isEmbedded: true });
    expect(parseImage({ url: "https://example.com/a.png", alt: "A" })).toMatchObject({ isEmbedded: false, alt: "A" });
    expect(parseImage({ data: "A".repeat(80), mime_type: "image/jpeg" })?.url).toMatch(/^data:image\/jpeg;base64,/);
    expect(parseImage({ url: "javascript:alert(1)" })).toBeUndefined();
    expect(parseImage({ data: "A".repeat(80), mime_type: "text/html" })).toBeUndefined();
  });

  it("unknown data is shown as JSON", () => {
    expect(parseData("weather", { a: 1 }, undefined).as).toBe("json");
    expect(parseData("chart", { odd: true }, undefined).as).toBe("json");
    expect(parseData("dataframe", { columns: ["a"], rows: [] }, undefined).as).toBe("table");
  });
});
