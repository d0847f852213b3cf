import type { DataPart } from "@runwire/client";
import { memo, useMemo } from "react";
import { useText } from "../../text";
import { Icon, JsonTree, type IconName } from "../../ui";
import { Chart } from "./Chart";
import { parseChart, type ChartData } from "./parseChart";
import { DataTable } from "./DataTable";
import { parseImage, type ParsedImage } from "./parseImage";
import { parseTable, type Table } from "./parseTable";
import style from "./Data.module.css";

/** A data block, parsed by its type. */
export type ParsedData =
  | { as: "table"; table: Table }
  | { as: "chart"; chart: ChartData }
  | { as: "image"; image: ParsedImage }
  | { as: "json" };

/** Parses a data block by its type and its shape; anything else is JSON. */
export function parseData(type: string, data: unknown, metadata: unknown): ParsedData {
  const name = type.toLowerCase();
  if (/image|picture|photo/.test(name)) {
    const image = parseImage(data, metadata);
    if (image !== undefined) return { as: "image", image };
  }
  if (/chart|plot|graph/.test(name)) {
    const chart = parseChart(data, metadata);
    if (chart !== undefined) return { as: "chart", chart };
  }
  if (/table|frame|rows|grid|records|csv/.test(name)) {
    const table = parseTable(data, metadata);
    if (table !== undefined) return { as: "table", table };
  }
  return { as: "json" };
}

const icons: Record<ParsedData["as"], IconName> = { table: "table", chart: "chart", image: "image", json: "info" };

/** Shows a data block as a table, a chart, an image or JSON. */
export const DataBlock = memo(function DataBlock({ part }: { part: DataPart }) {
  const { t } = useText();
  const { dataType, data, metadata } = part;
  const parsed = useMemo(() => parseData(dataType, data, metadata), [dataType, data, metadata]);
  const description = hasDescription(metadata) ? metadata.description : undefined;
  const name = nameOf(parsed) ?? (parsed.as === "json" ? dataType : undefined);
  return (
    <figure className={style["block"]}>
      <figcaption className={style["head"]}>
        <Icon name={icons[parsed.as]} />
        <span className={style["name"]}>{name ?? t.run.data[parsed.as]}</span>
        {description !== undefined && <span className={style["description"]}>{description}</span>}
      </figcaption>
      <div className={style["body"]}>
        {parsed.as === "table" && <DataTable table={parsed.table} />}
        {parsed.as === "chart" && <Chart chart={parsed.chart} />}
        {parsed.as === "image" && <ImageView image={parsed.image} />}
        {parsed.as === "json" && <JsonTree value={data} depth={1} label={dataType} />}
      </div>
    </figure>
  );
});

/** Shows an embedded image; a remote one is a link, so that viewing a run sends no request to other hosts. */
function ImageView({ image }: { image: ParsedImage }) {
  const { t } = useText();
  const alt = image.alt ?? t.run.data.image;
  if (image.isEmbedded) return <img className={style["image"]} src={image.url} alt={alt} loading="lazy" />;
  return (
    <a href={image.url} target="_blank" rel="noopener noreferrer nofollow" className={style["remote"]}>
      <Icon name="external" />
      {t.run.data.openImage(hostOf(image.url))}
    </a>
  );
}

function nameOf(parsed: ParsedData): string | undefined {
  if (parsed.as === "table") return parsed.table.name;
  if (parsed.as === "chart") return parsed.chart.name;
  return parsed.as === "image" ? parsed.image.alt : undefined;
}

function hasDescription(metadata: unknown): metadata is { description: string } {
  return typeof metadata === "object" && metadata !== null && "description" in metadata && typeof metadata.description === "string";
}

function hostOf(url: string): string {
  try {
    return new URL(url).host;
  } catch {
    return url;
  }
}
