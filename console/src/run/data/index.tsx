import type { DataPart } from "@runwire/client";
import { memo, useMemo } from "react";
import { useText } from "../../text";
import { Icon, JsonTree, type IconName } from "../../ui";
import { Chart } from "./Chart";
import { readChart, type ChartData } from "./chart";
import { DataTable } from "./DataTable";
import { readPicture, type Picture } from "./image";
import { readTable, type Table } from "./table";
import style from "./Data.module.css";

/** What a block of data turns out to be. */
export type Shown =
  | { as: "table"; table: Table }
  | { as: "chart"; chart: ChartData }
  | { as: "picture"; picture: Picture }
  | { as: "json" };

/** Reads a block of data by what it is called, and by its shape. What nobody knows is JSON. */
export function readData(type: string, data: unknown, metadata: unknown): Shown {
  const name = type.toLowerCase();
  if (/image|picture|photo/.test(name)) {
    const picture = readPicture(data, metadata);
    if (picture !== undefined) return { as: "picture", picture };
  }
  if (/chart|plot|graph/.test(name)) {
    const chart = readChart(data, metadata);
    if (chart !== undefined) return { as: "chart", chart };
  }
  if (/table|frame|rows|grid|records|csv/.test(name)) {
    const table = readTable(data, metadata);
    if (table !== undefined) return { as: "table", table };
  }
  return { as: "json" };
}

const icons: Record<Shown["as"], IconName> = { table: "table", chart: "chart", picture: "image", json: "info" };

/** Shows a block of data: a table, a chart, a picture, or what it is. */
export const DataBlock = memo(function DataBlock({ part }: { part: DataPart }) {
  const { t } = useText();
  const { dataType, data, metadata } = part;
  const shown = useMemo(() => readData(dataType, data, metadata), [dataType, data, metadata]);
  const description = isDescribed(metadata) ? metadata.description : undefined;
  const name = nameOf(shown) ?? (shown.as === "json" ? dataType : undefined);
  return (
    <figure className={style["block"]}>
      <figcaption className={style["head"]}>
        <Icon name={icons[shown.as]} />
        <span className={style["name"]}>{name ?? t.run.data[shown.as]}</span>
        {description !== undefined && <span className={style["description"]}>{description}</span>}
      </figcaption>
      <div className={style["body"]}>
        {shown.as === "table" && <DataTable table={shown.table} />}
        {shown.as === "chart" && <Chart chart={shown.chart} />}
        {shown.as === "picture" && <PictureView picture={shown.picture} />}
        {shown.as === "json" && <JsonTree value={data} depth={1} label={dataType} />}
      </div>
    </figure>
  );
});

/** Shows a picture that came with the run; one from elsewhere is a link, so that looking at a run calls nobody. */
function PictureView({ picture }: { picture: Picture }) {
  const { t } = useText();
  const words = picture.words ?? t.run.data.picture;
  if (picture.inside) return <img className={style["picture"]} src={picture.address} alt={words} loading="lazy" />;
  return (
    <a href={picture.address} target="_blank" rel="noopener noreferrer nofollow" className={style["remote"]}>
      <Icon name="external" />
      {t.run.data.openPicture(hostOf(picture.address))}
    </a>
  );
}

function nameOf(shown: Shown): string | undefined {
  if (shown.as === "table") return shown.table.name;
  if (shown.as === "chart") return shown.chart.name;
  return shown.as === "picture" ? shown.picture.words : undefined;
}

function isDescribed(metadata: unknown): metadata is { description: string } {
  return typeof metadata === "object" && metadata !== null && "description" in metadata && typeof metadata.description === "string";
}

function hostOf(address: string): string {
  try {
    return new URL(address).host;
  } catch {
    return address;
  }
}
