import { useText } from "../../text";
import { classNames } from "../../ui";
import type { ChartData } from "./parseChart";
import style from "./Data.module.css";

/** Number of series colours before they repeat. */
export const colours = 6;

/** Returns the CSS class of a series' colour. */
export function colourOf(index: number): string {
  return style[`c${index % colours}`] ?? "";
}

/** Legend of a chart with the values at the hovered label. */
export function Legend({ chart, hovered }: { chart: ChartData; hovered: number | undefined }) {
  const { format } = useText();
  const isPie = chart.kind === "pie";
  const entries = isPie
    ? chart.labels.map((label, index) => ({ name: label, value: chart.series[0]?.values[index] }))
    : chart.series.map((each) => ({ name: each.name, value: hovered === undefined ? undefined : each.values[hovered] }));
  const hoveredLabel = hovered !== undefined && !isPie ? chart.labels[hovered] : undefined;
  return (
    <ul className={style["legend"]}>
      {hoveredLabel !== undefined && <li className={style["legendLabel"]}>{hoveredLabel}</li>}
      {(entries.length > 1 || hovered !== undefined) &&
        entries.map((entry, index) => (
          <li key={index} className={classNames(isPie && hovered === index && style["legendHovered"])}>
            <span className={classNames(style["swatch"], colourOf(index))} aria-hidden="true" />
            {entry.name}
            {typeof entry.value === "number" && <strong className="tabular-nums">{format.number(entry.value)}</strong>}
          </li>
        ))}
    </ul>
  );
}
