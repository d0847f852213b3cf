import type { GotGraph } from "@runwire/client";
import { card, finish, type Placed, type Point } from "./place";

/** How high a line is that passes a column, in pixels. */
const lane = 18;
/** More rounds do not make small graphs any tidier. */
const rounds = 6;

/** A node in its column, or the place where a long line passes the column. */
interface Slot {
  id: string;
  isLane: boolean;
  before: Slot[];
  after: Slot[];
  y: number;
}

const heightOf = (slot: Slot) => (slot.isLane ? lane : card.height);
const middleOf = (slot: Slot) => slot.y + heightOf(slot) / 2;

/**
 * Places a graph in columns from left to right: each node one column after the last of those it builds on, lines with
 * few crossings, and nodes near what they are joined to. The same graph always looks the same, and a graph that grows
 * keeps its order where it can.
 */
export function placeGraph(graph: GotGraph, most = Infinity): Placed {
  const ids = graph.nodes.slice(0, most).map((node) => node.id);
  const edges = forwardEdges(ids, graph.edges);
  const columnOf = columnsOf(ids, edges);
  const columns: Slot[][] = [];
  const slots = new Map<string, Slot>();
  const put = (id: string, column: number, isLane: boolean): Slot => {
    const slot: Slot = { id, isLane, before: [], after: [], y: 0 };
    (columns[column] ??= []).push(slot);
    return slot;
  };
  for (const id of ids) slots.set(id, put(id, columnOf.get(id) ?? 0, false));
  const lanes = edges.map(({ from, to }) => {
    const passed: Slot[] = [];
    let last = slots.get(from);
    for (let column = (columnOf.get(from) ?? 0) + 1; column < (columnOf.get(to) ?? 0); column++) {
      const slot = put(`${from} ${to} ${column}`, column, true);
      join(last, slot);
      passed.push((last = slot));
    }
    join(last, slots.get(to));
    return passed;
  });
  for (let round = 0; round < rounds; round++) order(columns, round % 2 === 0);
  stack(columns);
  for (let round = 0; round < rounds; round++) settle(columns, round % 2 === 0);

  const top = Math.min(0, ...columns.flatMap((column) => column.map((slot) => slot.y)));
  const nodes = new Map<string, Point>();
  const left = (column: number) => column * (card.width + card.column);
  for (const [id, slot] of slots) nodes.set(id, { x: left(columnOf.get(id) ?? 0), y: slot.y - top });
  return finish(
    nodes,
    edges.map(({ from, to }, place) => ({
      from,
      to,
      via: (lanes[place] ?? []).flatMap((slot, at) => {
        const x = left((columnOf.get(from) ?? 0) + 1 + at);
        const y = middleOf(slot) - top;
        return [{ x, y }, { x: x + card.width, y }];
      }),
    })),
  );
}

function join(one: Slot | undefined, other: Slot | undefined): void {
  if (one === undefined || other === undefined) return;
  one.after.push(other);
  other.before.push(one);
}

/** Leaves out lines that would close a circle: thoughts may refer back, columns may not. */
function forwardEdges(ids: readonly string[], edges: GotGraph["edges"]): { from: string; to: string }[] {
  const known = new Set(ids);
  const next = new Map<string, string[]>();
  const kept: { from: string; to: string }[] = [];
  for (const { from, to } of edges) {
    if (!known.has(from) || !known.has(to) || from === to || reaches(next, to, from)) continue;
    next.set(from, [...(next.get(from) ?? []), to]);
    kept.push({ from, to });
  }
  return kept;
}

function reaches(next: ReadonlyMap<string, string[]>, from: string, goal: string): boolean {
  const [open, seen] = [[from], new Set<string>()];
  for (let id = open.pop(); id !== undefined; id = open.pop()) {
    if (id === goal) return true;
    if (seen.has(id)) continue;
    seen.add(id);
    open.push(...(next.get(id) ?? []));
  }
  return false;
}

/** Gives each node the column after the last of those it builds on. */
function columnsOf(ids: readonly string[], edges: readonly { from: string; to: string }[]): Map<string, number> {
  const columns = new Map(ids.map((id) => [id, 0]));
  const waiting = new Map(ids.map((id) => [id, 0]));
  const next = new Map<string, string[]>();
  for (const { from, to } of edges) {
    waiting.set(to, (waiting.get(to) ?? 0) + 1);
    next.set(from, [...(next.get(from) ?? []), to]);
  }
  const open = ids.filter((id) => waiting.get(id) === 0);
  for (let id = open.shift(); id !== undefined; id = open.shift()) {
    for (const to of next.get(id) ?? []) {
      columns.set(to, Math.max(columns.get(to) ?? 0, (columns.get(id) ?? 0) + 1));
      const left = (waiting.get(to) ?? 1) - 1;
      waiting.set(to, left);
      if (left === 0) open.push(to);
    }
  }
  return columns;
}

/** Sorts each column by where its neighbours in the column before (or after) stand. */
function order(columns: Slot[][], forwards: boolean): void {
  for (const column of forwards ? columns : columns.toReversed()) {
    const places = new Map<Slot, number>();
    for (const [place, slot] of column.entries()) {
      const near = forwards ? slot.before : slot.after;
      places.set(slot, near.length === 0 ? place : near.reduce((sum, other) => sum + other.y, 0) / near.length);
    }
    column.sort((one, other) => (places.get(one) ?? 0) - (places.get(other) ?? 0));
    // Until heights are known, `y` is the place in the column.
    for (const [place, slot] of column.entries()) slot.y = place;
  }
}

function stack(columns: readonly Slot[][]): void {
  for (const column of columns) {
    let y = 0;
    for (const slot of column) {
      slot.y = y;
      y += heightOf(slot) + card.row;
    }
  }
}

/** Moves each column's slots towards their neighbours, in their order and without overlap. */
function settle(columns: readonly Slot[][], forwards: boolean): void {
  for (const column of forwards ? columns : columns.toReversed()) {
    const wished = column.map((slot) => {
      const near = forwards ? slot.before : slot.after;
      if (near.length === 0) return slot.y;
      return near.reduce((sum, other) => sum + middleOf(other), 0) / near.length - heightOf(slot) / 2;
    });
    let end = -Infinity;
    let missed = 0;
    for (const [place, slot] of column.entries()) {
      slot.y = Math.max(wished[place] ?? 0, end);
      missed += slot.y - (wished[place] ?? 0);
      end = slot.y + heightOf(slot) + card.row;
    }
    // What was pushed down is shared out, so that the column stands in the middle of its wishes.
    const shift = column.length === 0 ? 0 : missed / column.length;
    for (const slot of column) slot.y -= shift;
  }
}
