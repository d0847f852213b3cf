import type { PointerEvent } from "react";
import { useText } from "../../text";
import { classNames } from "../../ui";
import { scaleOf, type ChartData, type Scale } from "./parseChart";
import { colourOf } from "./Legend";
import style from "./Data.module.css";

const height = 220;
const top = 10;
const bottom = 24;
const right = 8;

interface PlotProps {
  chart: ChartData;
  width: number;
  hovered: number | undefined;
  onHover(index: number | undefined): void;
}

/** A bar, line or area chart. */
export function Plot({ chart, width, hovered, onHover }: PlotProps) {
  const { t, format } = useText();
  const count = chart.labels.length;
  const isBar = chart.kind === "bar";
  const stacked = chart.stacked && isBar;
  const scale = scaleOf(extremes(chart, stacked), chart.kind !== "line");
  const ticks = scale.ticks.map((value) => ({ value, text: format.short(value) }));
  const left = 14 + Math.max(...ticks.map(({ text }) => text.length)) * 7;
  const plotWidth = Math.max(width - left - right, 40);
  const bandWidth = plotWidth / count;
  // Points are centred in their bands, like bars.
  const x = (index: number) => left + bandWidth * (index + 0.5);
  const y = (value: number) => top + (height - top - bottom) * (1 - (value - scale.min) / (scale.max - scale.min));
  const labelStride = Math.max(1, Math.ceil((count * 56) / plotWidth));
  const onPointerMove = (event: PointerEvent<SVGSVGElement>) => {
    const at = event.clientX - event.currentTarget.getBoundingClientRect().left;
    const index = Math.floor((at - left) / bandWidth);
    onHover(index >= 0 && index < count ? index : undefined);
  };
  return (
    <svg
      className={style["plot"]}
      width={width}
      height={height}
      role="img"
      aria-label={t.run.data.summary(chart.name ?? t.run.data.chart, format.list(chart.series.map((each) => each.name)), count)}
      onPointerMove={onPointerMove}
      onPointerLeave={() => onHover(undefined)}
    >
      {ticks.map(({ value, text }) => (
        <g key={value}>
          <line x1={left} x2={width - right} y1={y(value)} y2={y(value)} className={classNames(style["grid"], value === 0 && style["zero"])} />
          <text x={left - 8} y={y(value)} className={style["tickY"]}>
            {text}
          </text>
        </g>
      ))}
      {chart.labels.map(
        (label, index) =>
          index % labelStride === 0 && (
            <text key={index} x={x(index)} y={height - 6} className={style["tickX"]}>
              {truncateLabel(label, (bandWidth * labelStride) / 7)}
            </text>
          ),
      )}
      {hovered !== undefined && (
        <rect x={left + bandWidth * hovered} y={top} width={bandWidth} height={height - top - bottom} className={style["hoveredBand"]} />
      )}
      {isBar ? <Bars chart={chart} stacked={stacked} bandWidth={bandWidth} left={left} y={y} /> : <Lines chart={chart} scale={scale} x={x} y={y} hovered={hovered} />}
    </svg>
  );
}

type Axis = (value: number) => number;

function Bars({ chart, stacked, bandWidth, left, y }: { chart: ChartData; stacked: boolean; bandWidth: number; left: number; y: Axis }) {
  const barsPerBand = stacked ? 1 : chart.series.length;
  const groupWidth = Math.min(bandWidth * 0.72, 64 * barsPerBand);
  const barWidth = groupWidth / barsPerBand;
  const sums = chart.labels.map(() => ({ up: 0, down: 0 }));
  return chart.series.map((each, seriesIndex) => (
    <g key={seriesIndex} className={colourOf(seriesIndex)}>
      {each.values.map((value, index) => {
        if (value === null) return null;
        const sum = sums[index];
        const from = stacked && sum ? (value < 0 ? sum.down : sum.up) : 0;
        if (stacked && sum) value < 0 ? (sum.down += value) : (sum.up += value);
        const [high, low] = [y(Math.max(from, from + value)), y(Math.min(from, from + value))];
        const start = left + bandWidth * index + (bandWidth - groupWidth) / 2 + (stacked ? 0 : barWidth * seriesIndex);
        return <rect key={index} x={start} y={high} width={Math.max(barWidth - 1.5, 1)} height={Math.max(low - high, 1)} rx={Math.min(2, barWidth / 4)} className={style["bar"]} />;
      })}
    </g>
  ));
}

function Lines({ chart, scale, x, y, hovered }: { chart: ChartData; scale: Scale; x: Axis; y: Axis; hovered: number | undefined }) {
  const baseline = y(Math.max(scale.min, Math.min(0, scale.max)));
  const hasDots = chart.labels.length <= 40;
  return chart.series.map((each, seriesIndex) => (
    <g key={seriesIndex} className={colourOf(seriesIndex)}>
      {segments(each.values).map((segment) => {
        const line = segment.map(([index, value]) => `${x(index).toFixed(1)} ${y(value).toFixed(1)}`).join("L");
        const [from, to] = [segment[0]?.[0] ?? 0, segment.at(-1)?.[0] ?? 0];
        return (
          <g key={from}>
            {chart.kind === "area" && <path d={`M${x(from)} ${baseline}L${line}L${x(to)} ${baseline}Z`} className={style["area"]} />}
            <path d={`M${line}`} className={style["line"]} />
          </g>
        );
      })}
      {each.values.map((value, index) =>
        value === null || (!hasDots && hovered !== index) ? null : (
          <circle key={index} cx={x(index)} cy={y(value)} r={hovered === index ? 4 : 2.5} className={style["dot"]} />
        ),
      )}
    </g>
  ));
}

/** Splits a series at missing values: nothing is drawn over a gap. */
function segments(values: readonly (number | null)[]): [number, number][][] {
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

/** Truncates a label; Chinese characters count as two columns. */
function truncateLabel(label: string, columns: number): string {
  let left = columns;
  for (const [index, letter] of [...label].entries()) {
    left -= letter.charCodeAt(0) > 0x2e80 ? 2 : 1;
    if (left < 0) return `${[...label].slice(0, Math.max(1, index - 1)).join("")}…`;
  }
  return label;
}
