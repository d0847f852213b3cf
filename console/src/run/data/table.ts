/** A table as it can be drawn. */
export interface Table {
  name: string | undefined;
  description: string | undefined;
  columns: readonly Column[];
  rows: readonly (readonly unknown[])[];
}

/** A column: its words, and whether it holds numbers. */
export interface Column {
  title: string;
  numeric: boolean;
}

/** What rows are sorted by. */
export interface Order {
  column: number;
  down: boolean;
}

type Fields = Readonly<Record<string, unknown>>;

const isFields = (value: unknown): value is Fields => typeof value === "object" && value !== null && !Array.isArray(value);
const text = (value: unknown): string | undefined => (typeof value === "string" && value !== "" ? value : undefined);

/**
 * Reads a table: columns with rows of cells or of objects, or a list of objects. Gives nothing for what is none.
 */
export function readTable(data: unknown, metadata?: unknown): Table | undefined {
  const around = isFields(data) ? data : {};
  const said = isFields(metadata) ? metadata : {};
  const rows = Array.isArray(data) ? data : (around["rows"] ?? around["data"] ?? around["records"]);
  if (!Array.isArray(rows)) return undefined;
  const columns = columnsOf(around["columns"] ?? around["headers"] ?? said["columns"], rows);
  if (columns === undefined || columns.length === 0) return undefined;
  const cells: (readonly unknown[])[] = [];
  for (const row of rows) {
    if (Array.isArray(row)) cells.push(columns.map((_, index) => row[index] as unknown));
    else if (isFields(row)) cells.push(columns.map((column) => row[column.key]));
    else return undefined;
  }
  return {
    name: text(around["name"]) ?? text(around["title"]) ?? text(said["title"]) ?? text(said["name"]),
    description: text(said["description"]) ?? text(around["description"]),
    columns: columns.map((column, index) => ({ title: column.title, numeric: isNumeric(cells, index) })),
    rows: cells,
  };
}

function columnsOf(given: unknown, rows: readonly unknown[]): { key: string; title: string }[] | undefined {
  if (Array.isArray(given)) {
    return given.map((column, index) => {
      if (!isFields(column)) return { key: String(column), title: String(column) };
      const key = text(column["key"]) ?? text(column["field"]) ?? text(column["name"]) ?? text(column["id"]) ?? String(index);
      return { key, title: text(column["title"]) ?? text(column["label"]) ?? text(column["name"]) ?? key };
    });
  }
  if (rows.length === 0 || !rows.every(isFields)) return undefined;
  const keys = new Set<string>();
  for (const row of rows) for (const key of Object.keys(row)) keys.add(key);
  return [...keys].map((key) => ({ key, title: key }));
}

function isNumeric(rows: readonly (readonly unknown[])[], column: number): boolean {
  let numbers = 0;
  for (const row of rows) {
    const cell = row[column];
    if (typeof cell === "number") numbers++;
    else if (cell !== null && cell !== undefined && cell !== "") return false;
  }
  return numbers > 0;
}

const words = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });

/** Sorts rows by a column: numbers by size, words as people sort them, and what is missing at the end either way. */
export function sorted(rows: Table["rows"], order: Order | undefined): Table["rows"] {
  if (order === undefined) return rows;
  const { column, down } = order;
  return [...rows].sort((one, other) => {
    const [a, b] = [one[column], other[column]];
    const [aMissing, bMissing] = [isMissing(a), isMissing(b)];
    if (aMissing || bMissing) return Number(aMissing) - Number(bMissing);
    const difference = typeof a === "number" && typeof b === "number" ? a - b : words.compare(cellText(a), cellText(b));
    return down ? -difference : difference;
  });
}

/** Gives the next order after a click on a column's head: up, down, as it came. */
export function nextOrder(order: Order | undefined, column: number): Order | undefined {
  if (order?.column !== column) return { column, down: false };
  return order.down ? undefined : { column, down: true };
}

function isMissing(cell: unknown): boolean {
  return cell === null || cell === undefined || cell === "";
}

/** Writes a cell as a text. */
export function cellText(cell: unknown): string {
  if (isMissing(cell)) return "";
  return typeof cell === "object" ? JSON.stringify(cell) : String(cell);
}

/** Writes a table as tab-separated lines, which spreadsheets take. */
export function asLines(table: Table): string {
  const line = (cells: readonly string[]) => cells.map((cell) => cell.replaceAll(/[\t\n\r]/g, " ")).join("\t");
  return [line(table.columns.map((column) => column.title)), ...table.rows.map((row) => line(row.map(cellText)))].join("\n");
}
