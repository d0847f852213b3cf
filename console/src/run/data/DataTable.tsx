import { useMemo, useRef, useState, type UIEvent } from "react";
import { useText } from "../../text";
import { classNames, CopyButton, Icon } from "../../ui";
import { toTsv, cellText, nextSortOrder, sortRows, type SortOrder, type Table } from "./parseTable";
import style from "./Data.module.css";

/** Fixed row height of a virtualized table in pixels. */
const rowHeight = 33;
/** Tables with more rows are virtualized. */
const virtualizeAbove = 60;
const viewportHeight = 440;
const overscan = 12;

/** A table that can be sorted by its columns. */
export function DataTable({ table }: { table: Table }) {
  const { t, format } = useText();
  const [order, setOrder] = useState<SortOrder>();
  const [top, setTop] = useState(0);
  const container = useRef<HTMLDivElement>(null);
  const rows = useMemo(() => sortRows(table.rows, order), [table, order]);
  const isLong = rows.length > virtualizeAbove;
  const first = isLong ? Math.max(0, Math.floor(top / rowHeight) - overscan) : 0;
  const last = isLong ? Math.min(rows.length, Math.ceil((top + viewportHeight) / rowHeight) + overscan) : rows.length;
  const name = table.name ?? t.run.data.table;
  // Small scrolls do not change the rendered rows.
  const onScroll = (event: UIEvent<HTMLDivElement>) => {
    const next = event.currentTarget.scrollTop;
    if (isLong && Math.abs(next - top) > (rowHeight * overscan) / 2) setTop(next);
  };
  return (
    <div>
      <div ref={container} className={classNames(style["tableContainer"], isLong && style["longTable"])} tabIndex={0} role="group" aria-label={name} onScroll={onScroll}>
        <table className={style["table"]} aria-rowcount={rows.length + 1}>
          <caption className="visually-hidden">{name}</caption>
          <thead>
            <tr aria-rowindex={1}>
              {table.columns.map((column, index) => {
                const direction = order?.column === index ? (order.isDescending ? "descending" : "ascending") : undefined;
                return (
                  <th key={index} scope="col" className={classNames(column.numeric && style["number"])} aria-sort={direction ?? "none"}>
                    <button type="button" className={style["sort"]} onClick={() => setOrder(nextSortOrder(order, index))}>
                      {column.title}
                      <Icon
                        name="arrowUp"
                        size={11}
                        className={classNames(style["sortIcon"], direction !== undefined && style["sorted"], direction === "descending" && style["descending"])}
                      />
                    </button>
                  </th>
                );
              })}
            </tr>
          </thead>
          <tbody>
            {first > 0 && <tr aria-hidden="true" style={{ height: first * rowHeight }} />}
            {rows.slice(first, last).map((row, offset) => (
              <tr key={first + offset} aria-rowindex={first + offset + 2}>
                {row.map((cell, index) => (
                  <td key={index} className={classNames(table.columns[index]?.numeric === true && style["number"])}>
                    {typeof cell === "number" ? format.number(cell) : cellText(cell)}
                  </td>
                ))}
              </tr>
            ))}
            {last < rows.length && <tr aria-hidden="true" style={{ height: (rows.length - last) * rowHeight }} />}
          </tbody>
        </table>
      </div>
      <div className={style["foot"]}>
        <span>{t.run.data.rows(rows.length, format.number(rows.length))}</span>
        <CopyButton text={() => toTsv({ ...table, rows })} label={t.run.data.copyTable} />
      </div>
    </div>
  );
}
