/** Size of a node card and gaps of the layout, in pixels. */
export const card = { width: 208, height: 74, column: 60, row: 16 };

/** A point of the layout. */
export interface Point {
  x: number;
  y: number;
}

/** An edge, routed through points that avoid other nodes. */
export interface LayoutEdge {
  from: string;
  to: string;
  points: readonly Point[];
}

/** Layout of a drawing: the top left corner of each node, and the edges. */
export interface Layout {
  nodes: ReadonlyMap<string, Point>;
  edges: readonly LayoutEdge[];
  width: number;
  height: number;
}

/** Routes the edges of positioned nodes and computes the size. */
export function toLayout(nodes: ReadonlyMap<string, Point>, edges: readonly { from: string; to: string; via?: readonly Point[] }[]): Layout {
  let [width, height] = [0, 0];
  for (const { x, y } of nodes.values()) {
    width = Math.max(width, x + card.width);
    height = Math.max(height, y + card.height);
  }
  const layout = edges.flatMap(({ from, to, via = [] }): LayoutEdge[] => {
    const [source, target] = [nodes.get(from), nodes.get(to)];
    if (source === undefined || target === undefined) return [];
    const start = { x: source.x + card.width, y: source.y + card.height / 2 };
    return [{ from, to, points: [start, ...via, { x: target.x, y: target.y + card.height / 2 }] }];
  });
  return { nodes, edges: layout, width, height };
}

/** Returns the SVG path of a curve through points, from left to right. */
export function curvePath(points: readonly Point[], shift = 0): string {
  let path = "";
  points.forEach(({ x, y }, index) => {
    const before = points[index - 1];
    if (before === undefined) path = `M${x} ${y + shift}`;
    else {
      const bend = (x - before.x) / 2;
      path += `C${before.x + bend} ${before.y + shift} ${x - bend} ${y + shift} ${x} ${y + shift}`;
    }
  });
  return path;
}

/** Direction of an arrow key. */
export type Direction = "left" | "right" | "up" | "down";

/** Returns the next node in a direction: along an edge to the left and right, in the same column up and down. */
export function neighbourOf(layout: Layout, id: string, direction: Direction, preferred: ReadonlySet<string> = new Set()): string | undefined {
  const position = layout.nodes.get(id);
  if (position === undefined) return undefined;
  const distance = (target: string) => Math.abs((layout.nodes.get(target)?.y ?? Infinity) - position.y) - (preferred.has(target) ? 1e9 : 0);
  const nearest = (ids: string[]) => ids.reduce<string | undefined>((best, target) => (best === undefined || distance(target) < distance(best) ? target : best), undefined);
  if (direction === "left") return nearest(layout.edges.filter((edge) => edge.to === id).map((edge) => edge.from));
  if (direction === "right") return nearest(layout.edges.filter((edge) => edge.from === id).map((edge) => edge.to));
  const sign = direction === "down" ? 1 : -1;
  let best: string | undefined;
  for (const [target, { x, y }] of layout.nodes) {
    const distanceAhead = (y - position.y) * sign;
    if (x !== position.x || distanceAhead <= 0) continue;
    if (best === undefined || distanceAhead < ((layout.nodes.get(best)?.y ?? 0) - position.y) * sign) best = target;
  }
  return best;
}
