import { useEffect, useMemo, useRef, useState } from "react";
import { useText } from "../../text";
import { SegmentedControl } from "../../ui";
import { chartToTable, downsample, type ChartData } from "./parseChart";
import { DataTable } from "./DataTable";
import { Legend } from "./Legend";
import { Pie } from "./Pie";
import { Plot } from "./Plot";
import style from "./Data.module.css";

/** A chart that can be switched to a table of its numbers. */
export function Chart({ chart }: { chart: ChartData }) {
  const { t } = useText();
  const texts = t.run.data;
  const [mode, setMode] = useState<"chart" | "table">("chart");
  const [hovered, setHovered] = useState<number>();
  const downsampled = useMemo(() => downsample(chart), [chart]);
  const { container, width } = useWidth();
  return (
    <div>
      <div className={style["chartHead"]}>
        <Legend chart={downsampled} hovered={hovered} />
        <SegmentedControl<"chart" | "table">
          label={texts.showAs}
          value={mode}
          options={[
            { value: "chart", name: texts.chart },
            { value: "table", name: texts.table },
          ]}
          onChange={setMode}
        />
      </div>
      <div ref={container}>
        {mode === "table" ? (
          <DataTable table={chartToTable(chart, texts.label)} />
        ) : width === 0 ? null : downsampled.kind === "pie" ? (
          <Pie chart={downsampled} width={width} onHover={setHovered} hovered={hovered} />
        ) : (
          <Plot chart={downsampled} width={width} hovered={hovered} onHover={setHovered} />
        )}
      </div>
    </div>
  );
}

/** Observes the width of an element, so that a chart's texts keep their font size. */
function useWidth() {
  const container = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const element = container.current;
    if (element === null) return;
    const observer = new ResizeObserver(([entry]) => entry && setWidth(Math.floor(entry.contentRect.width)));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return { container, width };
}
