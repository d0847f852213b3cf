import { useMemo, useRef, useState, type UIEvent } from "react";
import { useText } from "../../text";
import { classes, Copy, Icon } from "../../ui";
import { asLines, cellText, nextOrder, sorted, type Order, type Table } from "./table";
import style from "./Data.module.css";

/** Every row of a long table has this height, so that those out of sight need not be drawn. */
const rowHeight = 33;
/** A longer table scrolls by itself, and draws what is seen. */
const mostRows = 60;
const seen = 440;
const beyond = 12;

/** Shows a table that sorts by its columns. */
export function DataTable({ table }: { table: Table }) {
  const { t, format } = useText();
  const [order, setOrder] = useState<Order>();
  const [top, setTop] = useState(0);
  const frame = useRef<HTMLDivElement>(null);
  const rows = useMemo(() => sorted(table.rows, order), [table, order]);
  const isLong = rows.length > mostRows;
  const first = isLong ? Math.max(0, Math.floor(top / rowHeight) - beyond) : 0;
  const last = isLong ? Math.min(rows.length, Math.ceil((top + seen) / rowHeight) + beyond) : rows.length;
  const name = table.name ?? t.run.data.table;
  // Only a change of what is drawn is worth drawing.
  const scroll = (event: UIEvent<HTMLDivElement>) => {
    const next = event.currentTarget.scrollTop;
    if (isLong && Math.abs(next - top) > (rowHeight * beyond) / 2) setTop(next);
  };
  return (
    <div>
      <div ref={frame} className={classes(style["tableFrame"], isLong && style["longTable"])} tabIndex={0} role="group" aria-label={name} onScroll={scroll}>
        <table className={style["table"]} aria-rowcount={rows.length + 1}>
          <caption className="unseen">{name}</caption>
          <thead>
            <tr aria-rowindex={1}>
              {table.columns.map((column, index) => {
                const direction = order?.column === index ? (order.down ? "descending" : "ascending") : undefined;
                return (
                  <th key={index} scope="col" className={classes(column.numeric && style["number"])} aria-sort={direction ?? "none"}>
                    <button type="button" className={style["sort"]} onClick={() => setOrder(nextOrder(order, index))}>
                      {column.title}
                      <Icon
                        name="arrowUp"
                        size={11}
                        className={classes(style["sortMark"], direction !== undefined && style["sorts"], direction === "descending" && style["downwards"])}
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
                  <td key={index} className={classes(table.columns[index]?.numeric === true && style["number"])}>
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
        <Copy text={() => asLines({ ...table, rows })} label={t.run.data.copyTable} />
      </div>
    </div>
  );
}
