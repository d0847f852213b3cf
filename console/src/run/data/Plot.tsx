import type { PointerEvent } from "react";
import { useText } from "../../text";
import { classes } from "../../ui";
import { scaleOf, type ChartData, type Scale } from "./chart";
import { colourOf } from "./Legend";
import style from "./Data.module.css";

const height = 220;
const top = 10;
const bottom = 24;
const right = 8;

interface PlotProps {
  chart: ChartData;
  width: number;
  near: number | undefined;
  onNear(index: number | undefined): void;
}

/** Draws bars, lines or areas over a common scale. */
export function Plot({ chart, width, near, onNear }: PlotProps) {
  const { t, format } = useText();
  const count = chart.labels.length;
  const isBar = chart.kind === "bar";
  const stacked = chart.stacked && isBar;
  const scale = scaleOf(extremes(chart, stacked), chart.kind !== "line");
  const ticks = scale.ticks.map((value) => ({ value, words: format.short(value) }));
  const left = 14 + Math.max(...ticks.map(({ words }) => words.length)) * 7;
  const inner = Math.max(width - left - right, 40);
  const slot = inner / count;
  // Lines go from the middle of the first place to the middle of the last, as bars stand.
  const x = (index: number) => left + slot * (index + 0.5);
  const y = (value: number) => top + (height - top - bottom) * (1 - (value - scale.least) / (scale.most - scale.least));
  const every = Math.max(1, Math.ceil((count * 56) / inner));
  const point = (event: PointerEvent<SVGSVGElement>) => {
    const at = event.clientX - event.currentTarget.getBoundingClientRect().left;
    const index = Math.floor((at - left) / slot);
    onNear(index >= 0 && index < count ? index : undefined);
  };
  return (
    <svg
      className={style["plot"]}
      width={width}
      height={height}
      role="img"
      aria-label={t.run.data.summary(chart.name ?? t.run.data.chart, format.list(chart.series.map((each) => each.name)), count)}
      onPointerMove={point}
      onPointerLeave={() => onNear(undefined)}
    >
      {ticks.map(({ value, words }) => (
        <g key={value}>
          <line x1={left} x2={width - right} y1={y(value)} y2={y(value)} className={classes(style["grid"], value === 0 && style["zero"])} />
          <text x={left - 8} y={y(value)} className={style["tickY"]}>
            {words}
          </text>
        </g>
      ))}
      {chart.labels.map(
        (label, index) =>
          index % every === 0 && (
            <text key={index} x={x(index)} y={height - 6} className={style["tickX"]}>
              {shortened(label, (slot * every) / 7)}
            </text>
          ),
      )}
      {near !== undefined && (
        <rect x={left + slot * near} y={top} width={slot} height={height - top - bottom} className={style["nearSlot"]} />
      )}
      {isBar ? <Bars chart={chart} stacked={stacked} slot={slot} left={left} y={y} /> : <Lines chart={chart} scale={scale} x={x} y={y} near={near} />}
    </svg>
  );
}

type Axis = (value: number) => number;

function Bars({ chart, stacked, slot, left, y }: { chart: ChartData; stacked: boolean; slot: number; left: number; y: Axis }) {
  const across = stacked ? 1 : chart.series.length;
  const room = Math.min(slot * 0.72, 64 * across);
  const bar = room / across;
  const sums = chart.labels.map(() => ({ up: 0, down: 0 }));
  return chart.series.map((each, place) => (
    <g key={place} className={colourOf(place)}>
      {each.values.map((value, index) => {
        if (value === null) return null;
        const sum = sums[index];
        const from = stacked && sum ? (value < 0 ? sum.down : sum.up) : 0;
        if (stacked && sum) value < 0 ? (sum.down += value) : (sum.up += value);
        const [high, low] = [y(Math.max(from, from + value)), y(Math.min(from, from + value))];
        const start = left + slot * index + (slot - room) / 2 + (stacked ? 0 : bar * place);
        return <rect key={index} x={start} y={high} width={Math.max(bar - 1.5, 1)} height={Math.max(low - high, 1)} rx={Math.min(2, bar / 4)} className={style["bar"]} />;
      })}
    </g>
  ));
}

function Lines({ chart, scale, x, y, near }: { chart: ChartData; scale: Scale; x: Axis; y: Axis; near: number | undefined }) {
  const ground = y(Math.max(scale.least, Math.min(0, scale.most)));
  const hasDots = chart.labels.length <= 40;
  return chart.series.map((each, place) => (
    <g key={place} className={colourOf(place)}>
      {stretches(each.values).map((stretch) => {
        const line = stretch.map(([index, value]) => `${x(index).toFixed(1)} ${y(value).toFixed(1)}`).join("L");
        const [from, to] = [stretch[0]?.[0] ?? 0, stretch.at(-1)?.[0] ?? 0];
        return (
          <g key={from}>
            {chart.kind === "area" && <path d={`M${x(from)} ${ground}L${line}L${x(to)} ${ground}Z`} className={style["area"]} />}
            <path d={`M${line}`} className={style["line"]} />
          </g>
        );
      })}
      {each.values.map((value, index) =>
        value === null || (!hasDots && near !== index) ? null : (
          <circle key={index} cx={x(index)} cy={y(value)} r={near === index ? 4 : 2.5} className={style["dot"]} />
        ),
      )}
    </g>
  ));
}

/** Cuts a series where values are missing: nothing is drawn over a gap. */
function stretches(values: readonly (number | null)[]): [number, number][][] {
  const found: [number, number][][] = [];
  let open: [number, number][] | undefined;
  for (const [index, value] of values.entries()) {
    if (value === null) {
      open = undefined;
      continue;
    }
    if (open === undefined) found.push((open = []));
    open.push([index, value]);
  }
  return found;
}

function extremes(chart: ChartData, stacked: boolean): number[] {
  if (!stacked) return chart.series.flatMap((each) => each.values.filter((value) => value !== null));
  return chart.labels.flatMap((_, index) => {
    const values = chart.series.map((each) => each.values[index] ?? 0);
    return [values.reduce((sum, value) => sum + Math.max(0, value), 0), values.reduce((sum, value) => sum + Math.min(0, value), 0)];
  });
}

/** Chinese characters are twice as wide as letters. */
function shortened(label: string, columns: number): string {
  let left = columns;
  for (const [index, letter] of [...label].entries()) {
    left -= letter.charCodeAt(0) > 0x2e80 ? 2 : 1;
    if (left < 0) return `${[...label].slice(0, Math.max(1, index - 1)).join("")}…`;
  }
  return label;
}
