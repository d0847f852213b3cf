import type { TotTree } from "@runwire/client";
import { card, toLayout, type Layout, type Point } from "./layout";

/** Layout of a tree from left to right: leaves in rows, each parent centred on its children. */
export function layoutTree(tree: TotTree, maxNodes = Infinity): Layout {
  const visible = tree.nodes.slice(0, maxNodes);
  const nodesById = new Map(visible.map((node) => [node.id, node]));
  const nodes = new Map<string, Point>();
  const childrenOf = (id: string) => (nodesById.get(id)?.children ?? []).filter((child) => nodesById.has(child));
  const root = visible[0];
  let y = 0;
  // Post-order without recursion: an agent's tree may have any depth.
  const stack = root === undefined ? [] : [{ id: root.id, isExpanded: false }];
  for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
    const { id, isExpanded } = next;
    const x = (nodesById.get(id)?.depth ?? 0) * (card.width + card.column);
    const children = childrenOf(id);
    if (children.length === 0) {
      nodes.set(id, { x, y });
      y += card.height + card.row;
    } else if (!isExpanded) {
      stack.push({ id, isExpanded: true });
      for (const child of children.toReversed()) stack.push({ id: child, isExpanded: false });
    } else {
      const [first, last] = [nodes.get(children[0] ?? ""), nodes.get(children.at(-1) ?? "")];
      nodes.set(id, { x, y: ((first?.y ?? 0) + (last?.y ?? 0)) / 2 });
    }
  }
  const edges = visible.flatMap((node) => (node.parent === undefined ? [] : [{ from: node.parent, to: node.id }]));
  return toLayout(nodes, edges);
}

/** Returns the edges that backtracking passed. */
export function backtrackEdges(tree: TotTree): { from: string; to: string; isLast: boolean }[] {
  const nodesById = new Map(tree.nodes.map((node) => [node.id, node]));
  const edges = new Map<string, { from: string; to: string; isLast: boolean }>();
  for (const { from, to } of tree.backtracks) {
    let id: string | undefined = from;
    while (id !== undefined && id !== to) {
      const parent: string | undefined = nodesById.get(id)?.parent;
      if (parent !== undefined) {
        const isLast = parent === to || edges.get(id)?.isLast === true;
        edges.set(id, { from: id, to: parent, isLast });
      }
      id = parent;
    }
  }
  return [...edges.values()];
}
