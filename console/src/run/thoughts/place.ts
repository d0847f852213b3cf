/** Measures of a drawing, in pixels. */
export const card = { width: 208, height: 74, column: 60, row: 16 };

/** A point of a drawing. */
export interface Point {
  x: number;
  y: number;
}

/** A line from one node to another, through the points that keep it clear of other nodes. */
export interface PlacedEdge {
  from: string;
  to: string;
  points: readonly Point[];
}

/** Where everything of a drawing stands: the upper left corner of each node, and the lines. */
export interface Placed {
  nodes: ReadonlyMap<string, Point>;
  edges: readonly PlacedEdge[];
  width: number;
  height: number;
}

/** Joins nodes that were placed, and measures the whole. */
export function finish(nodes: ReadonlyMap<string, Point>, edges: readonly { from: string; to: string; via?: readonly Point[] }[]): Placed {
  let [width, height] = [0, 0];
  for (const { x, y } of nodes.values()) {
    width = Math.max(width, x + card.width);
    height = Math.max(height, y + card.height);
  }
  const placed = edges.flatMap(({ from, to, via = [] }): PlacedEdge[] => {
    const [one, other] = [nodes.get(from), nodes.get(to)];
    if (one === undefined || other === undefined) return [];
    const start = { x: one.x + card.width, y: one.y + card.height / 2 };
    return [{ from, to, points: [start, ...via, { x: other.x, y: other.y + card.height / 2 }] }];
  });
  return { nodes, edges: placed, width, height };
}

/** Draws a soft line through points, from left to right. */
export function curve(points: readonly Point[], shift = 0): string {
  let path = "";
  points.forEach(({ x, y }, place) => {
    const before = points[place - 1];
    if (before === undefined) path = `M${x} ${y + shift}`;
    else {
      const bend = (x - before.x) / 2;
      path += `C${before.x + bend} ${before.y + shift} ${x - bend} ${y + shift} ${x} ${y + shift}`;
    }
  });
  return path;
}

/** A key's direction. */
export type Direction = "left" | "right" | "up" | "down";

/** Finds the node that lies in a direction: along a line to the left and right, in the same column up and down. */
export function neighbour(placed: Placed, id: string, direction: Direction, preferred: ReadonlySet<string> = new Set()): string | undefined {
  const here = placed.nodes.get(id);
  if (here === undefined) return undefined;
  const distance = (other: string) => Math.abs((placed.nodes.get(other)?.y ?? Infinity) - here.y) - (preferred.has(other) ? 1e9 : 0);
  const nearest = (ids: string[]) => ids.reduce<string | undefined>((best, other) => (best === undefined || distance(other) < distance(best) ? other : best), undefined);
  if (direction === "left") return nearest(placed.edges.filter((edge) => edge.to === id).map((edge) => edge.from));
  if (direction === "right") return nearest(placed.edges.filter((edge) => edge.from === id).map((edge) => edge.to));
  const by = direction === "down" ? 1 : -1;
  let best: string | undefined;
  for (const [other, { x, y }] of placed.nodes) {
    const ahead = (y - here.y) * by;
    if (x !== here.x || ahead <= 0) continue;
    if (best === undefined || ahead < ((placed.nodes.get(best)?.y ?? 0) - here.y) * by) best = other;
  }
  return best;
}
