import { useEffect, useMemo, useRef, useState } from "react";
import { useText } from "../../text";
import { Segments } from "../../ui";
import { asTable, thinned, type ChartData } from "./chart";
import { DataTable } from "./DataTable";
import { Legend } from "./Legend";
import { Pie } from "./Pie";
import { Plot } from "./Plot";
import style from "./Data.module.css";

/** Draws a chart, or shows the same numbers as a table. */
export function Chart({ chart }: { chart: ChartData }) {
  const { t } = useText();
  const words = t.run.data;
  const [as, setAs] = useState<"chart" | "table">("chart");
  const [near, setNear] = useState<number>();
  const drawn = useMemo(() => thinned(chart), [chart]);
  const { frame, width } = useWidth();
  return (
    <div>
      <div className={style["chartHead"]}>
        <Legend chart={drawn} near={near} />
        <Segments<"chart" | "table">
          label={words.showAs}
          value={as}
          options={[
            { value: "chart", name: words.chart },
            { value: "table", name: words.table },
          ]}
          onChange={setAs}
        />
      </div>
      <div ref={frame}>
        {as === "table" ? (
          <DataTable table={asTable(chart, words.label)} />
        ) : width === 0 ? null : drawn.kind === "pie" ? (
          <Pie chart={drawn} width={width} onNear={setNear} near={near} />
        ) : (
          <Plot chart={drawn} width={width} near={near} onNear={setNear} />
        )}
      </div>
    </div>
  );
}

/** Follows the width of an element, so that a chart's words keep their size whatever its own. */
function useWidth() {
  const frame = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const element = frame.current;
    if (element === null) return;
    const observer = new ResizeObserver(([entry]) => entry && setWidth(Math.floor(entry.contentRect.width)));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return { frame, width };
}
