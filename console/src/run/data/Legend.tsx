import { useText } from "../../text";
import { classes } from "../../ui";
import type { ChartData } from "./chart";
import style from "./Data.module.css";

/** How many colours series have before they begin again. */
export const colours = 6;

/** Gives a series its colour. */
export function colourOf(index: number): string {
  return style[`c${index % colours}`] ?? "";
}

/** Names the series, and their values at the place that is pointed at. */
export function Legend({ chart, near }: { chart: ChartData; near: number | undefined }) {
  const { format } = useText();
  const isPie = chart.kind === "pie";
  const entries = isPie
    ? chart.labels.map((label, index) => ({ name: label, value: chart.series[0]?.values[index] }))
    : chart.series.map((each) => ({ name: each.name, value: near === undefined ? undefined : each.values[near] }));
  const place = near !== undefined && !isPie ? chart.labels[near] : undefined;
  return (
    <ul className={style["legend"]}>
      {place !== undefined && <li className={style["legendPlace"]}>{place}</li>}
      {(entries.length > 1 || near !== undefined) &&
        entries.map((entry, index) => (
          <li key={index} className={classes(isPie && near === index && style["legendNear"])}>
            <span className={classes(style["swatch"], colourOf(index))} aria-hidden="true" />
            {entry.name}
            {typeof entry.value === "number" && <strong className="figures">{format.number(entry.value)}</strong>}
          </li>
        ))}
    </ul>
  );
}
