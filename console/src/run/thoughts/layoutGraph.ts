import type { GotGraph } from "@runwire/client";
import { card, toLayout, type Layout, type Point } from "./layout";

/** Height of a lane for an edge that passes a column, in pixels. */
const laneHeight = 18;
/** Iterations of the layout; more do not improve small graphs. */
const iterations = 6;

/** A node in a column, or the lane of a long edge that passes the column. */
interface ColumnItem {
  id: string;
  isLane: boolean;
  before: ColumnItem[];
  after: ColumnItem[];
  y: number;
}

const heightOf = (item: ColumnItem) => (item.isLane ? laneHeight : card.height);
const middleOf = (item: ColumnItem) => item.y + heightOf(item) / 2;

/**
 * Layered layout of a graph from left to right (Sugiyama): each node is one column after its last dependency, with few
 * edge crossings and nodes near their neighbours. It is deterministic, and keeps the order of a growing graph if possible.
 */
export function layoutGraph(graph: GotGraph, maxNodes = Infinity): Layout {
  const ids = graph.nodes.slice(0, maxNodes).map((node) => node.id);
  const edges = forwardEdges(ids, graph.edges);
  const columnOf = columnsOf(ids, edges);
  const columns: ColumnItem[][] = [];
  const nodeItems = new Map<string, ColumnItem>();
  const addItem = (id: string, column: number, isLane: boolean): ColumnItem => {
    const item: ColumnItem = { id, isLane, before: [], after: [], y: 0 };
    (columns[column] ??= []).push(item);
    return item;
  };
  for (const id of ids) nodeItems.set(id, addItem(id, columnOf.get(id) ?? 0, false));
  const edgeLanes = edges.map(({ from, to }) => {
    const edgeItems: ColumnItem[] = [];
    let last = nodeItems.get(from);
    for (let column = (columnOf.get(from) ?? 0) + 1; column < (columnOf.get(to) ?? 0); column++) {
      const item = addItem(`${from} ${to} ${column}`, column, true);
      connect(last, item);
      edgeItems.push((last = item));
    }
    connect(last, nodeItems.get(to));
    return edgeItems;
  });
  for (let iteration = 0; iteration < iterations; iteration++) sortColumns(columns, iteration % 2 === 0);
  stackItems(columns);
  for (let iteration = 0; iteration < iterations; iteration++) alignItems(columns, iteration % 2 === 0);

  const top = Math.min(0, ...columns.flatMap((column) => column.map((item) => item.y)));
  const nodes = new Map<string, Point>();
  const columnX = (column: number) => column * (card.width + card.column);
  for (const [id, item] of nodeItems) nodes.set(id, { x: columnX(columnOf.get(id) ?? 0), y: item.y - top });
  return toLayout(
    nodes,
    edges.map(({ from, to }, index) => ({
      from,
      to,
      via: (edgeLanes[index] ?? []).flatMap((item, laneIndex) => {
        const x = columnX((columnOf.get(from) ?? 0) + 1 + laneIndex);
        const y = middleOf(item) - top;
        return [{ x, y }, { x: x + card.width, y }];
      }),
    })),
  );
}

function connect(one: ColumnItem | undefined, other: ColumnItem | undefined): void {
  if (one === undefined || other === undefined) return;
  one.after.push(other);
  other.before.push(one);
}

/** Removes edges that would close a cycle. */
function forwardEdges(ids: readonly string[], edges: GotGraph["edges"]): { from: string; to: string }[] {
  const idSet = new Set(ids);
  const next = new Map<string, string[]>();
  const forward: { from: string; to: string }[] = [];
  for (const { from, to } of edges) {
    if (!idSet.has(from) || !idSet.has(to) || from === to || reaches(next, to, from)) continue;
    next.set(from, [...(next.get(from) ?? []), to]);
    forward.push({ from, to });
  }
  return forward;
}

function reaches(next: ReadonlyMap<string, string[]>, from: string, target: string): boolean {
  const [queue, visited] = [[from], new Set<string>()];
  for (let id = queue.pop(); id !== undefined; id = queue.pop()) {
    if (id === target) return true;
    if (visited.has(id)) continue;
    visited.add(id);
    queue.push(...(next.get(id) ?? []));
  }
  return false;
}

/** Assigns each node the column after its last dependency. */
function columnsOf(ids: readonly string[], edges: readonly { from: string; to: string }[]): Map<string, number> {
  const columns = new Map(ids.map((id) => [id, 0]));
  const inDegree = new Map(ids.map((id) => [id, 0]));
  const next = new Map<string, string[]>();
  for (const { from, to } of edges) {
    inDegree.set(to, (inDegree.get(to) ?? 0) + 1);
    next.set(from, [...(next.get(from) ?? []), to]);
  }
  const queue = ids.filter((id) => inDegree.get(id) === 0);
  for (let id = queue.shift(); id !== undefined; id = queue.shift()) {
    for (const to of next.get(id) ?? []) {
      columns.set(to, Math.max(columns.get(to) ?? 0, (columns.get(id) ?? 0) + 1));
      const remaining = (inDegree.get(to) ?? 1) - 1;
      inDegree.set(to, remaining);
      if (remaining === 0) queue.push(to);
    }
  }
  return columns;
}

/** Sorts each column by the mean position of its neighbours in the previous (or next) column. */
function sortColumns(columns: ColumnItem[][], forwards: boolean): void {
  for (const column of forwards ? columns : columns.toReversed()) {
    const positions = new Map<ColumnItem, number>();
    for (const [index, item] of column.entries()) {
      const neighbours = forwards ? item.before : item.after;
      positions.set(item, neighbours.length === 0 ? index : neighbours.reduce((sum, other) => sum + other.y, 0) / neighbours.length);
    }
    column.sort((one, other) => (positions.get(one) ?? 0) - (positions.get(other) ?? 0));
    // Until heights are known, `y` is the index in the column.
    for (const [index, item] of column.entries()) item.y = index;
  }
}

function stackItems(columns: readonly ColumnItem[][]): void {
  for (const column of columns) {
    let y = 0;
    for (const item of column) {
      item.y = y;
      y += heightOf(item) + card.row;
    }
  }
}

/** Moves the items of each column towards their neighbours, in order and without overlap. */
function alignItems(columns: readonly ColumnItem[][], forwards: boolean): void {
  for (const column of forwards ? columns : columns.toReversed()) {
    const desired = column.map((item) => {
      const neighbours = forwards ? item.before : item.after;
      if (neighbours.length === 0) return item.y;
      return neighbours.reduce((sum, other) => sum + middleOf(other), 0) / neighbours.length - heightOf(item) / 2;
    });
    let end = -Infinity;
    let overshoot = 0;
    for (const [index, item] of column.entries()) {
      item.y = Math.max(desired[index] ?? 0, end);
      overshoot += item.y - (desired[index] ?? 0);
      end = item.y + heightOf(item) + card.row;
    }
    // Distributes the overshoot, so that the column is centred on its desired positions.
    const shift = column.length === 0 ? 0 : overshoot / column.length;
    for (const item of column) item.y -= shift;
  }
}
