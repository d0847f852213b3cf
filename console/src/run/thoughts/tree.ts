import type { TotTree } from "@runwire/client";
import { card, finish, type Placed, type Point } from "./place";

/** Places a tree from left to right: leaves one below the other, and each thought in the middle of its children. */
export function placeTree(tree: TotTree, most = Infinity): Placed {
  const shown = tree.nodes.slice(0, most);
  const known = new Map(shown.map((node) => [node.id, node]));
  const nodes = new Map<string, Point>();
  const childrenOf = (id: string) => (known.get(id)?.children ?? []).filter((child) => known.has(child));
  const root = shown[0];
  let y = 0;
  // Children come before their parents, without recursion: a tree may be as deep as an agent likes.
  const open = root === undefined ? [] : [{ id: root.id, isEntered: false }];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { id, isEntered } = next;
    const x = (known.get(id)?.depth ?? 0) * (card.width + card.column);
    const children = childrenOf(id);
    if (children.length === 0) {
      nodes.set(id, { x, y });
      y += card.height + card.row;
    } else if (!isEntered) {
      open.push({ id, isEntered: true });
      for (const child of children.toReversed()) open.push({ id: child, isEntered: false });
    } else {
      const [first, last] = [nodes.get(children[0] ?? ""), nodes.get(children.at(-1) ?? "")];
      nodes.set(id, { x, y: ((first?.y ?? 0) + (last?.y ?? 0)) / 2 });
    }
  }
  const edges = shown.flatMap((node) => (node.parent === undefined ? [] : [{ from: node.parent, to: node.id }]));
  return finish(nodes, edges);
}

/** Follows each way back through the tree: the lines that were gone back along. */
export function waysBack(tree: TotTree): { from: string; to: string; isLast: boolean }[] {
  const known = new Map(tree.nodes.map((node) => [node.id, node]));
  const lines = new Map<string, { from: string; to: string; isLast: boolean }>();
  for (const { from, to } of tree.backtracks) {
    let id: string | undefined = from;
    while (id !== undefined && id !== to) {
      const parent: string | undefined = known.get(id)?.parent;
      if (parent !== undefined) {
        const isLast = parent === to || lines.get(id)?.isLast === true;
        lines.set(id, { from: id, to: parent, isLast });
      }
      id = parent;
    }
  }
  return [...lines.values()];
}
