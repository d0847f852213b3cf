import type { Table } from "./parseTable";

/** A chart to draw. */
export interface ChartData {
  kind: "bar" | "line" | "area" | "pie";
  name: string | undefined;
  labels: readonly string[];
  series: readonly Series[];
  /** Whether the series are stacked. */
  stacked: boolean;
}

/** A series of values; a missing value is `null`. */
export interface Series {
  name: string;
  values: readonly (number | null)[];
}

type Fields = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is Fields => typeof value === "object" && value !== null && !Array.isArray(value);
const stringOf = (value: unknown): string | undefined => (typeof value === "string" && value !== "" ? value : undefined);

const kinds: Readonly<Record<string, ChartData["kind"]>> = {
  bar: "bar",
  column: "bar",
  histogram: "bar",
  line: "line",
  area: "area",
  pie: "pie",
  donut: "pie",
  doughnut: "pie",
};

/** Maximum number of points; charts with more are downsampled. */
export const maxPoints = 400;

/** Parses a chart: labels with series of numbers. Returns undefined if the data is not a chart. */
export function parseChart(data: unknown, metadata?: unknown): ChartData | undefined {
  if (!isObject(data)) return undefined;
  const meta = isObject(metadata) ? metadata : {};
  // Some libraries nest the data one level deeper.
  const body = isObject(data["data"]) ? { ...data["data"], ...data, data: undefined } : data;
  const kind = kinds[(stringOf(data["type"]) ?? stringOf(data["chart_type"]) ?? stringOf(data["kind"]) ?? stringOf(meta["chart_type"]) ?? "").toLowerCase()];
  const rawSeries = (body["series"] ?? body["datasets"]) as unknown;
  if (kind === undefined || !Array.isArray(rawSeries) || rawSeries.length === 0) return undefined;
  const series: Series[] = [];
  let found = labelsOf(body["labels"] ?? body["categories"] ?? body["x"] ?? (isObject(body["xAxis"]) ? body["xAxis"]["data"] : undefined));
  for (const [index, raw] of rawSeries.entries()) {
    const values = Array.isArray(raw) ? raw : isObject(raw) ? (raw["data"] ?? raw["values"]) : undefined;
    if (!Array.isArray(values)) return undefined;
    found ??= labelsOf(values.map((value) => (isObject(value) ? (value["x"] ?? value["label"] ?? value["name"]) : undefined)));
    const name = isObject(raw) ? (stringOf(raw["name"]) ?? stringOf(raw["label"])) : undefined;
    series.push({ name: name ?? String(index + 1), values: values.map(numberOf) });
  }
  const length = Math.max(...series.map((each) => each.values.length));
  if (!Number.isFinite(length) || length === 0) return undefined;
  const labels = Array.from({ length }, (_, index) => found?.[index] ?? String(index + 1));
  return { kind, name: stringOf(body["name"]) ?? stringOf(body["title"]) ?? stringOf(meta["title"]), labels, series, stacked: body["stacked"] === true };
}

function labelsOf(labels: unknown): string[] | undefined {
  if (!Array.isArray(labels) || labels.every((label) => label === undefined)) return undefined;
  return labels.map((label) => (label === null || label === undefined ? "" : String(label)));
}

function numberOf(value: unknown): number | null {
  const number = isObject(value) ? (value["y"] ?? value["value"]) : value;
  return typeof number === "number" && Number.isFinite(number) ? number : null;
}

/** Converts a chart to a table with a row per label and a column per series. */
export function chartToTable(chart: ChartData, first: string): Table {
  return {
    name: chart.name,
    description: undefined,
    columns: [{ title: first, numeric: false }, ...chart.series.map((each) => ({ title: each.name, numeric: true }))],
    rows: chart.labels.map((label, index) => [label, ...chart.series.map((each) => each.values[index] ?? null)]),
  };
}

/** A linear scale with ticks. */
export interface Scale {
  min: number;
  max: number;
  ticks: readonly number[];
}

/** Returns a scale with round ticks. `fromZero` includes zero, for bars and areas. */
export function scaleOf(values: readonly number[], fromZero: boolean, steps = 4): Scale {
  let min = Math.min(...values);
  let max = Math.max(...values);
  if (!Number.isFinite(min) || !Number.isFinite(max)) [min, max] = [0, 1];
  if (fromZero) [min, max] = [Math.min(0, min), Math.max(0, max)];
  if (min === max) [min, max] = min === 0 ? [0, 1] : [Math.min(0, min), Math.max(0, max)];
  const roughStep = (max - min) / steps;
  const power = 10 ** Math.floor(Math.log10(roughStep));
  const step = power * ([1, 2, 2.5, 5].find((each) => each * power >= roughStep) ?? 10);
  const from = Math.floor(min / step);
  const to = Math.ceil(max / step);
  const round = (value: number) => Number(value.toPrecision(12));
  const ticks = Array.from({ length: to - from + 1 }, (_, index) => round((from + index) * step));
  return { min: round(from * step), max: round(to * step), ticks };
}

/** Downsamples a chart with too many points to every n-th point. */
export function downsample(chart: ChartData): ChartData {
  if (chart.labels.length <= maxPoints) return chart;
  const stride = Math.ceil(chart.labels.length / maxPoints);
  const keep = <T>(items: readonly T[]) => items.filter((_, index) => index % stride === 0);
  return { ...chart, labels: keep(chart.labels), series: chart.series.map((each) => ({ ...each, values: keep(each.values) })) };
}
