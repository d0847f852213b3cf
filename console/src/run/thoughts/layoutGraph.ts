import type { GotGraph } from "@runwire/client";
import { card, toLayout, type Layout, type Point } from "./layout";

/** Height of a lane for an edge that passes a column, in pixels. */
const laneHeight = 18;
/** Iterations of the layout; more do not improve small graphs. */
const iterations = 6;

/** A node in a column, or the lane of a long edge that passes the column. */
interface Slot {
  id: string;
  isLane: boolean;
  before: Slot[];
  after: Slot[];
  y: number;
}

const heightOf = (slot: Slot) => (slot.isLane ? laneHeight : card.height);
const middleOf = (slot: Slot) => slot.y + heightOf(slot) / 2;

/**
 * Layered layout of a graph from left to right (Sugiyama): each node is one column after its last dependency, with few
 * edge crossings and nodes near their neighbours. It is deterministic, and keeps the order of a growing graph if possible.
 */
export function layoutGraph(graph: GotGraph, maxNodes = Infinity): Layout {
  const ids = graph.nodes.slice(0, maxNodes).map((node) => node.id);
  const edges = forwardEdges(ids, graph.edges);
  const columnOf = columnsOf(ids, edges);
  const columns: Slot[][] = [];
  const slots = new Map<string, Slot>();
  const addSlot = (id: string, column: number, isLane: boolean): Slot => {
    const slot: Slot = { id, isLane, before: [], after: [], y: 0 };
    (columns[column] ??= []).push(slot);
    return slot;
  };
  for (const id of ids) slots.set(id, addSlot(id, columnOf.get(id) ?? 0, false));
  const edgeLanes = edges.map(({ from, to }) => {
    const edgeSlots: Slot[] = [];
    let last = slots.get(from);
    for (let column = (columnOf.get(from) ?? 0) + 1; column < (columnOf.get(to) ?? 0); column++) {
      const slot = addSlot(`${from} ${to} ${column}`, column, true);
      connect(last, slot);
      edgeSlots.push((last = slot));
    }
    connect(last, slots.get(to));
    return edgeSlots;
  });
  for (let iteration = 0; iteration < iterations; iteration++) sortColumns(columns, iteration % 2 === 0);
  stackSlots(columns);
  for (let iteration = 0; iteration < iterations; iteration++) alignSlots(columns, iteration % 2 === 0);

  const top = Math.min(0, ...columns.flatMap((column) => column.map((slot) => slot.y)));
  const nodes = new Map<string, Point>();
  const columnX = (column: number) => column * (card.width + card.column);
  for (const [id, slot] of slots) nodes.set(id, { x: columnX(columnOf.get(id) ?? 0), y: slot.y - top });
  return toLayout(
    nodes,
    edges.map(({ from, to }, index) => ({
      from,
      to,
      via: (edgeLanes[index] ?? []).flatMap((slot, laneIndex) => {
        const x = columnX((columnOf.get(from) ?? 0) + 1 + laneIndex);
        const y = middleOf(slot) - top;
        return [{ x, y }, { x: x + card.width, y }];
      }),
    })),
  );
}

function connect(one: Slot | undefined, other: Slot | undefined): void {
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
function sortColumns(columns: Slot[][], forwards: boolean): void {
  for (const column of forwards ? columns : columns.toReversed()) {
    const positions = new Map<Slot, number>();
    for (const [index, slot] of column.entries()) {
      const neighbours = forwards ? slot.before : slot.after;
      positions.set(slot, neighbours.length === 0 ? index : neighbours.reduce((sum, other) => sum + other.y, 0) / neighbours.length);
    }
    column.sort((one, other) => (positions.get(one) ?? 0) - (positions.get(other) ?? 0));
    // Until heights are known, `y` is the index in the column.
    for (const [index, slot] of column.entries()) slot.y = index;
  }
}

function stackSlots(columns: readonly Slot[][]): void {
  for (const column of columns) {
    let y = 0;
    for (const slot of column) {
      slot.y = y;
      y += heightOf(slot) + card.row;
    }
  }
}

/** Moves the slots of each column towards their neighbours, in order and without overlap. */
function alignSlots(columns: readonly Slot[][], forwards: boolean): void {
  for (const column of forwards ? columns : columns.toReversed()) {
    const desired = column.map((slot) => {
      const neighbours = forwards ? slot.before : slot.after;
      if (neighbours.length === 0) return slot.y;
      return neighbours.reduce((sum, other) => sum + middleOf(other), 0) / neighbours.length - heightOf(slot) / 2;
    });
    let end = -Infinity;
    let overshoot = 0;
    for (const [index, slot] of column.entries()) {
      slot.y = Math.max(desired[index] ?? 0, end);
      overshoot += slot.y - (desired[index] ?? 0);
      end = slot.y + heightOf(slot) + card.row;
    }
    // Distributes the overshoot, so that the column is centred on its desired positions.
    const shift = column.length === 0 ? 0 : overshoot / column.length;
    for (const slot of column) slot.y -= shift;
  }
}
