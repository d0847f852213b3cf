import { useText } from "../../text";
import { classes } from "../../ui";
import type { ChartData } from "./chart";
import { colourOf } from "./Legend";
import style from "./Data.module.css";

interface PieProps {
  chart: ChartData;
  width: number;
  near: number | undefined;
  onNear(index: number | undefined): void;
}

/** Draws shares of a whole as a ring, with the share that is pointed at in its middle. */
export function Pie({ chart, width, near, onNear }: PieProps) {
  const { t, format } = useText();
  const values = (chart.series[0]?.values ?? []).map((value) => Math.max(0, value ?? 0));
  const whole = values.reduce((sum, value) => sum + value, 0);
  const size = Math.min(220, width);
  const radius = size / 2 - 16;
  const around = 2 * Math.PI * radius;
  const shown = near === undefined ? undefined : values[near];
  let before = 0;
  return (
    <svg
      className={style["pie"]}
      width={size}
      height={size}
      role="img"
      aria-label={t.run.data.summary(chart.name ?? t.run.data.chart, format.list(chart.labels.slice(0, 8)), values.length)}
      onPointerLeave={() => onNear(undefined)}
    >
      <g transform={`rotate(-90 ${size / 2} ${size / 2})`}>
        {values.map((value, index) => {
          const share = whole === 0 ? 0 : value / whole;
          const start = before;
          before += share;
          return (
            <circle
              key={index}
              cx={size / 2}
              cy={size / 2}
              r={radius}
              className={classes(style["share"], colourOf(index), near !== undefined && near !== index && style["away"])}
              strokeDasharray={`${Math.max(0, share * around - 1.5)} ${around}`}
              strokeDashoffset={-start * around}
              onPointerEnter={() => onNear(index)}
            />
          );
        })}
      </g>
      <text x={size / 2} y={size / 2} className={style["pieWords"]}>
        {shown === undefined ? format.short(whole) : format.percent(whole === 0 ? 0 : shown / whole)}
      </text>
    </svg>
  );
}
