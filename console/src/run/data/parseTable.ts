/** A table to draw. */
export interface Table {
  name: string | undefined;
  description: string | undefined;
  columns: readonly Column[];
  rows: readonly (readonly unknown[])[];
}

/** A column: its title, and whether all its values are numbers. */
export interface Column {
  title: string;
  numeric: boolean;
}

/** Sort order of the rows. */
export interface SortOrder {
  column: number;
  isDescending: boolean;
}

type Fields = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is Fields => typeof value === "object" && value !== null && !Array.isArray(value);
const stringOf = (value: unknown): string | undefined => (typeof value === "string" && value !== "" ? value : undefined);

/**
 * Parses a table: columns with rows of cells or objects, or a list of objects. Returns undefined if the data is not a
 * table.
 */
export function parseTable(data: unknown, metadata?: unknown): Table | undefined {
  const source = isObject(data) ? data : {};
  const meta = isObject(metadata) ? metadata : {};
  const rows = Array.isArray(data) ? data : (source["rows"] ?? source["data"] ?? source["records"]);
  if (!Array.isArray(rows)) return undefined;
  const columns = columnsOf(source["columns"] ?? source["headers"] ?? meta["columns"], rows);
  if (columns === undefined || columns.length === 0) return undefined;
  const cells: (readonly unknown[])[] = [];
  for (const row of rows) {
    if (Array.isArray(row)) cells.push(columns.map((_, index) => row[index] as unknown));
    else if (isObject(row)) cells.push(columns.map((column) => row[column.key]));
    else return undefined;
  }
  return {
    name: stringOf(source["name"]) ?? stringOf(source["title"]) ?? stringOf(meta["title"]) ?? stringOf(meta["name"]),
    description: stringOf(meta["description"]) ?? stringOf(source["description"]),
    columns: columns.map((column, index) => ({ title: column.title, numeric: isNumeric(cells, index) })),
    rows: cells,
  };
}

function columnsOf(definition: unknown, rows: readonly unknown[]): { key: string; title: string }[] | undefined {
  if (Array.isArray(definition)) {
    return definition.map((column, index) => {
      if (!isObject(column)) return { key: String(column), title: String(column) };
      const key = stringOf(column["key"]) ?? stringOf(column["field"]) ?? stringOf(column["name"]) ?? stringOf(column["id"]) ?? String(index);
      return { key, title: stringOf(column["title"]) ?? stringOf(column["label"]) ?? stringOf(column["name"]) ?? key };
    });
  }
  if (rows.length === 0 || !rows.every(isObject)) return undefined;
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

const collator = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });

/** Sorts rows by a column: numbers by value, texts by locale, missing cells always last. */
export function sortRows(rows: Table["rows"], order: SortOrder | undefined): Table["rows"] {
  if (order === undefined) return rows;
  const { column, isDescending } = order;
  return [...rows].sort((one, other) => {
    const [a, b] = [one[column], other[column]];
    const [aMissing, bMissing] = [isMissing(a), isMissing(b)];
    if (aMissing || bMissing) return Number(aMissing) - Number(bMissing);
    const difference = typeof a === "number" && typeof b === "number" ? a - b : collator.compare(cellText(a), cellText(b));
    return isDescending ? -difference : difference;
  });
}

/** Returns the sort order after a click on a column header: ascending, descending, none. */
export function nextSortOrder(order: SortOrder | undefined, column: number): SortOrder | undefined {
  if (order?.column !== column) return { column, isDescending: false };
  return order.isDescending ? undefined : { column, isDescending: true };
}

function isMissing(cell: unknown): boolean {
  return cell === null || cell === undefined || cell === "";
}

/** Returns the text of a cell. */
export function cellText(cell: unknown): string {
  if (isMissing(cell)) return "";
  return typeof cell === "object" ? JSON.stringify(cell) : String(cell);
}

/** Converts a table to tab-separated values, for spreadsheets. */
export function toTsv(table: Table): string {
  const line = (cells: readonly string[]) => cells.map((cell) => cell.replaceAll(/[\t\n\r]/g, " ")).join("\t");
  return [line(table.columns.map((column) => column.title)), ...table.rows.map((row) => line(row.map(cellText)))].join("\n");
}
