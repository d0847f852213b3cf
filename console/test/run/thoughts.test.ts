import type { GotGraph, TotTree } from "@runwire/client";
import { describe, expect, test } from "vitest";
import { layoutGraph } from "../../src/run/thoughts/layoutGraph";
import { card, curvePath, neighbourOf, type Layout } from "../../src/run/thoughts/layout";
import { layoutTree, backtrackEdges } from "../../src/run/thoughts/layoutTree";

function tree(nodes: [id: string, parent?: string][], backtracks: TotTree["backtracks"] = []): TotTree {
  const childrenOf = (id: string) => nodes.filter(([, parent]) => parent === id).map(([child]) => child);
  return {
    nodes: nodes.map(([id, parent]) => ({
      id,
      text: id,
      value: id,
      depth: id.split(".").length - 1,
      children: childrenOf(id),
      status: "candidate",
      at: 0,
      ...(parent !== undefined && { parent }),
    })),
    path: ["0"],
    backtracks,
  };
}

const sample = tree([["0"], ["0.1", "0"], ["0.2", "0"], ["0.1.1", "0.1"], ["0.1.2", "0.1"]], [{ at: 0, from: "0.1.2", to: "0", reason: "dead end" }]);

function graph(nodes: string[], edges: string[]): GotGraph {
  return {
    nodes: nodes.map((id) => ({ id, status: "planned" })),
    edges: edges.map((edge) => ({ from: edge[0] ?? "", to: edge[1] ?? "", isInferred: false })),
  };
}

function overlaps(layout: Layout): boolean {
  const all = [...layout.nodes.values()];
  return all.some((one, place) => all.slice(place + 1).some((other) => Math.abs(one.x - other.x) < card.width && Math.abs(one.y - other.y) < card.height));
}

describe("a tree", () => {
  test("has columns by depth, parents centred on their children, and no overlaps", () => {
    const layout = layoutTree(sample);
    const at = (id: string) => layout.nodes.get(id) ?? { x: -1, y: -1 };
    expect(at("0.1").y).toBe((at("0.1.1").y + at("0.1.2").y) / 2);
    expect(at("0").y).toBe((at("0.1").y + at("0.2").y) / 2);
    expect(at("0.1.1").x).toBe(2 * (card.width + card.column));
    expect(overlaps(layout)).toBe(false);
    expect(layout.edges).toHaveLength(4);
  });

  test("of any depth is laid out without recursion", () => {
    const ids = Array.from({ length: 20_000 }, (_, depth) => String(depth));
    const deep: TotTree = {
      nodes: ids.map((id, depth) => ({ id, text: id, value: id, depth, children: ids.slice(depth + 1, depth + 2), status: "chosen", at: 0, ...(depth > 0 && { parent: String(depth - 1) }) })),
      path: ids,
      backtracks: [],
    };
    expect(layoutTree(deep).nodes.size).toBe(20_000);
  });

  test("returns the edges that backtracking passed", () => {
    expect(backtrackEdges(sample)).toEqual([
      { from: "0.1.2", to: "0.1", isLast: false },
      { from: "0.1", to: "0", isLast: true },
    ]);
  });

  test("is navigated with the arrow keys, preferring the chosen path", () => {
    const layout = layoutTree(sample);
    expect(neighbourOf(layout, "0", "right", new Set(["0.2"]))).toBe("0.2");
    expect(neighbourOf(layout, "0.1.2", "left")).toBe("0.1");
    expect(neighbourOf(layout, "0.1", "down")).toBe("0.2");
    expect(neighbourOf(layout, "0.1", "up")).toBeUndefined();
    expect(neighbourOf(layout, "nobody", "up")).toBeUndefined();
  });
});

describe("a graph", () => {
  test("places each node after its dependencies", () => {
    const { nodes } = layoutGraph(graph(["a", "b", "c", "d"], ["ab", "bc", "ac", "cd"]));
    const x = (id: string) => nodes.get(id)?.x ?? -1;
    expect([x("a"), x("b"), x("c"), x("d")]).toEqual([0, 1, 2, 3].map((column) => column * (card.width + card.column)));
  });

  test("routes long edges around nodes", () => {
    const layout = layoutGraph(graph(["a", "b", "c"], ["ab", "bc", "ac"]));
    const long = layout.edges.find((edge) => edge.from === "a" && edge.to === "c");
    const between = layout.nodes.get("b") ?? { x: 0, y: 0 };
    expect(long?.points).toHaveLength(4);
    expect(long?.points.slice(1, 3).every(({ y }) => y < between.y || y > between.y + card.height)).toBe(true);
  });

  test("has no avoidable crossings", () => {
    const layout = layoutGraph(graph(["a", "b", "c", "d"], ["ad", "bc"]));
    const y = (id: string) => layout.nodes.get(id)?.y ?? 0;
    expect(Math.sign(y("a") - y("b"))).toBe(Math.sign(y("d") - y("c")));
    expect(overlaps(layout)).toBe(false);
  });

  test("with a cycle, a self-loop or an unknown node is laid out", () => {
    const layout = layoutGraph(graph(["a", "b"], ["ab", "ba", "aa", "ax"]));
    expect(layout.edges.map((edge) => edge.from + edge.to)).toEqual(["ab"]);
    expect(overlaps(layout)).toBe(false);
  });

  test("of many nodes has no overlaps and is deterministic", () => {
    const ids = [..."abcdefghijklmnopqrst"];
    const edges = ids.flatMap((id, place) => [2, 3, 7].filter((by) => place + by < ids.length).map((by) => id + (ids[place + by] ?? "")));
    const layout = layoutGraph(graph(ids, edges));
    expect(overlaps(layout)).toBe(false);
    expect(layoutGraph(graph(ids, edges))).toEqual(layout);
    expect([...layout.nodes.values()].every(({ x, y }) => x >= 0 && y >= 0)).toBe(true);
  });

  test("without nodes is empty", () => {
    expect(layoutGraph(graph([], []))).toMatchObject({ width: 0, height: 0, edges: [] });
    expect(curvePath([])).toBe("");
  });
});
