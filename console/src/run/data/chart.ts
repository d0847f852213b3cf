import type { Table } from "./table";

/** A chart as it can be drawn. */
export interface ChartData {
  kind: "bar" | "line" | "area" | "pie";
  name: string | undefined;
  labels: readonly string[];
  series: readonly Series[];
  /** Whether series stand on one another. */
  stacked: boolean;
}

/** One line, one kind of bar; what is missing is `null`. */
export interface Series {
  name: string;
  values: readonly (number | null)[];
}

type Fields = Readonly<Record<string, unknown>>;

const isFields = (value: unknown): value is Fields => typeof value === "object" && value !== null && !Array.isArray(value);
const text = (value: unknown): string | undefined => (typeof value === "string" && value !== "" ? value : undefined);

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

/** More points than this are drawn as fewer. */
export const mostPoints = 400;

/** Reads a chart: labels with series of numbers. Gives nothing for what is none. */
export function readChart(data: unknown, metadata?: unknown): ChartData | undefined {
  if (!isFields(data)) return undefined;
  const said = isFields(metadata) ? metadata : {};
  // Some libraries put the data one level deeper, beside the kind.
  const body = isFields(data["data"]) ? { ...data["data"], ...data, data: undefined } : data;
  const kind = kinds[(text(data["type"]) ?? text(data["chart_type"]) ?? text(data["kind"]) ?? text(said["chart_type"]) ?? "").toLowerCase()];
  const lines = (body["series"] ?? body["datasets"]) as unknown;
  if (kind === undefined || !Array.isArray(lines) || lines.length === 0) return undefined;
  const series: Series[] = [];
  let found = labelsOf(body["labels"] ?? body["categories"] ?? body["x"] ?? (isFields(body["xAxis"]) ? body["xAxis"]["data"] : undefined));
  for (const [index, line] of lines.entries()) {
    const values = Array.isArray(line) ? line : isFields(line) ? (line["data"] ?? line["values"]) : undefined;
    if (!Array.isArray(values)) return undefined;
    found ??= labelsOf(values.map((value) => (isFields(value) ? (value["x"] ?? value["label"] ?? value["name"]) : undefined)));
    const name = isFields(line) ? (text(line["name"]) ?? text(line["label"])) : undefined;
    series.push({ name: name ?? String(index + 1), values: values.map(numberOf) });
  }
  const length = Math.max(...series.map((each) => each.values.length));
  if (!Number.isFinite(length) || length === 0) return undefined;
  const labels = Array.from({ length }, (_, index) => found?.[index] ?? String(index + 1));
  return { kind, name: text(body["name"]) ?? text(body["title"]) ?? text(said["title"]), labels, series, stacked: body["stacked"] === true };
}

function labelsOf(labels: unknown): string[] | undefined {
  if (!Array.isArray(labels) || labels.every((label) => label === undefined)) return undefined;
  return labels.map((label) => (label === null || label === undefined ? "" : String(label)));
}

function numberOf(value: unknown): number | null {
  const number = isFields(value) ? (value["y"] ?? value["value"]) : value;
  return typeof number === "number" && Number.isFinite(number) ? number : null;
}

/** Writes a chart as a table: a row for each label, a column for each series. */
export function asTable(chart: ChartData, first: string): Table {
  return {
    name: chart.name,
    description: undefined,
    columns: [{ title: first, numeric: false }, ...chart.series.map((each) => ({ title: each.name, numeric: true }))],
    rows: chart.labels.map((label, index) => [label, ...chart.series.map((each) => each.values[index] ?? null)]),
  };
}

/** A scale from least to most, with round steps between. */
export interface Scale {
  least: number;
  most: number;
  ticks: readonly number[];
}

/** Makes a scale whose ends and steps are round numbers. Bars and areas begin at zero. */
export function scaleOf(values: readonly number[], fromZero: boolean, steps = 4): Scale {
  let least = Math.min(...values);
  let most = Math.max(...values);
  if (!Number.isFinite(least) || !Number.isFinite(most)) [least, most] = [0, 1];
  if (fromZero) [least, most] = [Math.min(0, least), Math.max(0, most)];
  if (least === most) [least, most] = least === 0 ? [0, 1] : [Math.min(0, least), Math.max(0, most)];
  const rough = (most - least) / steps;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 2.5, 5].find((each) => each * power >= rough) ?? 10);
  const from = Math.floor(least / step);
  const to = Math.ceil(most / step);
  const round = (value: number) => Number(value.toPrecision(12));
  const ticks = Array.from({ length: to - from + 1 }, (_, index) => round((from + index) * step));
  return { least: round(from * step), most: round(to * step), ticks };
}

/** Thins a chart with very many points, keeping its shape: every n-th point. */
export function thinned(chart: ChartData): ChartData {
  if (chart.labels.length <= mostPoints) return chart;
  const every = Math.ceil(chart.labels.length / mostPoints);
  const keep = <T>(items: readonly T[]) => items.filter((_, index) => index % every === 0);
  return { ...chart, labels: keep(chart.labels), series: chart.series.map((each) => ({ ...each, values: keep(each.values) })) };
}
