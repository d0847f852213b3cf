import { useText } from "../../text";
import { classNames } from "../../ui";
import type { ChartData } from "./parseChart";
import { colourOf } from "./Legend";
import style from "./Data.module.css";

interface PieProps {
  chart: ChartData;
  width: number;
  hovered: number | undefined;
  onHover(index: number | undefined): void;
}

/** A ring chart with the hovered share in its middle. */
export function Pie({ chart, width, hovered, onHover }: PieProps) {
  const { t, format } = useText();
  const values = (chart.series[0]?.values ?? []).map((value) => Math.max(0, value ?? 0));
  const total = values.reduce((sum, value) => sum + value, 0);
  const size = Math.min(220, width);
  const radius = size / 2 - 16;
  const circumference = 2 * Math.PI * radius;
  const hoveredValue = hovered === undefined ? undefined : values[hovered];
  let offset = 0;
  return (
    <svg
      className={style["pie"]}
      width={size}
      height={size}
      role="img"
      aria-label={t.run.data.summary(chart.name ?? t.run.data.chart, format.list(chart.labels.slice(0, 8)), values.length)}
      onPointerLeave={() => onHover(undefined)}
    >
      <g transform={`rotate(-90 ${size / 2} ${size / 2})`}>
        {values.map((value, index) => {
          const share = total === 0 ? 0 : value / total;
          const start = offset;
          offset += share;
          return (
            <circle
              key={index}
              cx={size / 2}
              cy={size / 2}
              r={radius}
              className={classNames(style["share"], colourOf(index), hovered !== undefined && hovered !== index && style["dimmed"])}
              strokeDasharray={`${Math.max(0, share * circumference - 1.5)} ${circumference}`}
              strokeDashoffset={-start * circumference}
              onPointerEnter={() => onHover(index)}
            />
          );
        })}
      </g>
      <text x={size / 2} y={size / 2} className={style["pieLabel"]}>
        {hoveredValue === undefined ? format.short(total) : format.percent(total === 0 ? 0 : hoveredValue / total)}
      </text>
    </svg>
  );
}
