import type {
  GotExpandedEvent,
  GotNodeCompletedEvent,
  GotNodeFailedEvent,
  GotNodeStartedEvent,
  GotPlannedEvent,
  TotBacktrackedEvent,
  TotEvaluatedEvent,
  TotExpandedEvent,
} from "../generated.js";

/** One thought of a tree. */
export interface TotNode {
  id: string;
  /** The thought in words; empty for the root. */
  text: string;
  /** The thought as it came. */
  value: unknown;
  /** The root has depth 0. */
  depth: number;
  parent?: string;
  children: readonly string[];
  score?: number;
  /** `abandoned`: it was gone into, and then back from. */
  status: "candidate" | "chosen" | "abandoned";
  /** The place in the order in which thoughts were first gone into, from 1; the root has none. */
  visit?: number;
  /** When it came up, in milliseconds since the epoch. */
  at: number;
}

/** A tree of thoughts, as it grew. */
export interface TotTree {
  /** In the order they came up; the first is the root. */
  nodes: readonly TotNode[];
  /** From the root to the thought that is being followed. */
  path: readonly string[];
  /** The times it went back, oldest first. */
  backtracks: readonly { at: number; from: string; to: string; reason?: string }[];
}

/** One node of a graph of thoughts. */
export interface GotNode {
  id: string;
  status: "planned" | "running" | "completed" | "failed";
  summary?: string;
  error?: string;
  /** In milliseconds since the epoch. */
  startedAt?: number;
  endedAt?: number;
  /** The node that it was added around. */
  addedBy?: string;
}

/** Says that one node builds on another. */
export interface GotEdge {
  from: string;
  to: string;
  /** Whether the source does not say so, and only the order of events suggests it. */
  isInferred: boolean;
}

/** A graph of thoughts, as it grew. */
export interface GotGraph {
  nodes: readonly GotNode[];
  edges: readonly GotEdge[];
  /** How many nodes and edges the source says there are. */
  nodeCount?: number;
  edgeCount?: number;
}

const ROOT = "0";

/** Edges beyond which none are supposed any more: nobody could look at them. */
const MOST_EDGES = 2000;

/** Grows a tree of thoughts. */
export class TotFold {
  readonly #nodes = new Map<string, TotNode>();
  #path = [ROOT];
  /** What was last expanded: scores are told by place. */
  #candidates: string[] = [];
  #backtracks: TotTree["backtracks"] = [];
  #visits = 0;
  #shown: TotTree | undefined;

  expanded(event: TotExpandedEvent, at: number): void {
    this.#shown = undefined;
    if (this.#nodes.size === 0) this.#nodes.set(ROOT, { id: ROOT, text: "", value: null, depth: 0, children: [], status: "chosen", at });
    const parent = this.#current();
    const children = [...parent.children];
    const values: unknown[] = Array.isArray(event.candidates) ? event.candidates : [event.candidates];
    this.#candidates = values.map((value) => {
      const text = wordsOf(value);
      // A thought that comes up again after going back is the same thought.
      const known = children.find((id) => this.#nodes.get(id)?.text === text);
      if (known !== undefined) return known;
      const id = `${parent.id}.${children.length + 1}`;
      this.#nodes.set(id, { id, text, value, depth: parent.depth + 1, parent: parent.id, children: [], status: "candidate", at });
      children.push(id);
      return id;
    });
    this.#nodes.set(parent.id, { ...parent, children });
  }

  evaluated(event: TotEvaluatedEvent): void {
    this.#shown = undefined;
    const scores: unknown[] = Array.isArray(event.scores) ? event.scores : [];
    this.#candidates.forEach((id, place) => {
      const node = this.#nodes.get(id);
      const score = scores[place];
      if (node === undefined) return;
      const chosen = place === event.chosen;
      const taken = chosen && { status: "chosen" as const, visit: node.visit ?? ++this.#visits };
      this.#nodes.set(id, { ...node, ...(typeof score === "number" && { score }), ...taken });
      if (chosen) this.#path = [...this.#path, id];
    });
    this.#candidates = [];
  }

  backtracked(event: TotBacktrackedEvent, at: number): void {
    this.#shown = undefined;
    if (this.#nodes.size === 0) return;
    const depth = typeof event.to_depth === "number" ? Math.max(0, Math.trunc(event.to_depth)) : 0;
    const from = this.#current().id;
    for (const id of this.#path.slice(depth + 1)) {
      const node = this.#nodes.get(id);
      if (node !== undefined) this.#nodes.set(id, { ...node, status: "abandoned" });
    }
    this.#path = this.#path.slice(0, depth + 1);
    const back = { at, from, to: this.#current().id, ...(event.reason !== undefined && { reason: event.reason }) };
    this.#backtracks = [...this.#backtracks, back];
  }

  snapshot(): TotTree | undefined {
    if (this.#nodes.size === 0) return undefined;
    this.#shown ??= { nodes: [...this.#nodes.values()], path: this.#path, backtracks: this.#backtracks };
    return this.#shown;
  }

  #current(): TotNode {
    const node = this.#nodes.get(this.#path.at(-1) ?? ROOT);
    return node ?? { id: ROOT, text: "", value: null, depth: 0, children: [], status: "chosen", at: 0 };
  }
}

/** Grows a graph of thoughts. */
export class GotFold {
  readonly #nodes = new Map<string, GotNode>();
  #edges: GotEdge[] = [];
  #nodeCount: number | undefined;
  #edgeCount: number | undefined;
  /** Expansions whose new nodes have not all shown up; the source tells only how many there are. */
  #expansions: { node: string; left: number }[] = [];
  #shown: GotGraph | undefined;

  planned(event: GotPlannedEvent): void {
    this.#shown = undefined;
    this.#nodeCount = countOf(event.node_count) ?? this.#nodeCount;
    this.#edgeCount = countOf(event.edge_count) ?? this.#edgeCount;
    for (const id of idsOf(event.node_ids)) if (!this.#nodes.has(id)) this.#nodes.set(id, { id, status: "planned" });
  }

  expanded(event: GotExpandedEvent): void {
    this.#shown = undefined;
    const ids = idsOf(event.nodes_added);
    for (const id of ids) this.#add(id, event.node_id);
    const added = countOf(event.nodes_added);
    if (added !== undefined) this.#expansions.push({ node: event.node_id, left: added });
    this.#nodeCount = sum(this.#nodeCount, added ?? ids.length);
    for (const edge of edgesOf(event.edges_added)) this.#join(edge.from, edge.to, false);
    this.#edgeCount = sum(this.#edgeCount, countOf(event.edges_added) ?? edgesOf(event.edges_added).length);
  }

  started(event: GotNodeStartedEvent, at: number): void {
    this.#shown = undefined;
    const known = this.#nodes.get(event.node_id) ?? this.#find(event.node_id);
    if (known.startedAt === undefined) this.#connect(event.node_id);
    this.#nodes.set(event.node_id, { ...known, status: "running", startedAt: at });
  }

  completed(event: GotNodeCompletedEvent, at: number): void {
    this.#shown = undefined;
    const node = this.#nodes.get(event.node_id) ?? this.#find(event.node_id);
    const summary = event.result_summary !== undefined && { summary: event.result_summary };
    this.#nodes.set(event.node_id, { ...node, status: "completed", endedAt: at, ...summary });
  }

  failed(event: GotNodeFailedEvent, at: number): void {
    this.#shown = undefined;
    const node = this.#nodes.get(event.node_id) ?? this.#find(event.node_id);
    this.#nodes.set(event.node_id, { ...node, status: "failed", endedAt: at, error: event.error });
  }

  snapshot(): GotGraph | undefined {
    if (this.#nodes.size === 0) return undefined;
    const counts = {
      ...(this.#nodeCount !== undefined && { nodeCount: this.#nodeCount }),
      ...(this.#edgeCount !== undefined && { edgeCount: this.#edgeCount }),
    };
    this.#shown ??= { nodes: [...this.#nodes.values()], edges: [...this.#edges], ...counts };
    return this.#shown;
  }

  /** Makes a node that nobody announced by name: it belongs to an expansion that still misses some. */
  #find(id: string): GotNode {
    const open = this.#expansions.filter((expansion) => expansion.left > 0);
    const by = open.find((expansion) => `${id}`.startsWith(expansion.node)) ?? open[0];
    if (by === undefined) return { id, status: "planned" };
    by.left--;
    return this.#add(id, by.node);
  }

  #add(id: string, by: string): GotNode {
    const node: GotNode = { ...(this.#nodes.get(id) ?? { id, status: "planned" }), addedBy: by };
    this.#nodes.set(id, node);
    this.#join(by, id, true);
    return node;
  }

  /** Draws edges from what was done when a node began, and was followed by nothing that is done too. */
  #connect(id: string): void {
    if (this.#edges.length >= MOST_EDGES || this.#edges.some((edge) => edge.to === id)) return;
    const followed = new Set(this.#edges.flatMap((edge) => (this.#nodes.get(edge.to)?.status === "completed" ? [edge.from] : [])));
    for (const node of this.#nodes.values()) {
      if (node.status === "completed" && node.id !== id && !followed.has(node.id)) this.#join(node.id, id, true);
    }
  }

  #join(from: string, to: string, isInferred: boolean): void {
    const known = this.#edges.findIndex((edge) => edge.from === from && edge.to === to);
    if (known === -1) this.#edges.push({ from, to, isInferred });
    else if (!isInferred) this.#edges[known] = { from, to, isInferred };
  }
}

/** Finds what a person reads of a thought that may be a text or an object. */
function wordsOf(value: unknown): string {
  if (typeof value === "string") return value;
  if (typeof value === "object" && value !== null) {
    for (const name of ["thought", "content", "text", "name"]) {
      const words = (value as Record<string, unknown>)[name];
      if (typeof words === "string") return words;
    }
  }
  return JSON.stringify(value) ?? "";
}

function countOf(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
}

function sum(one: number | undefined, other: number): number | undefined {
  return one === undefined ? undefined : one + other;
}

function idsOf(value: unknown): string[] {
  if (!Array.isArray(value)) return [];
  return value.flatMap((item: unknown) => {
    if (typeof item === "string") return [item];
    const id = typeof item === "object" && item !== null ? ((item as Record<string, unknown>)["id"] ?? (item as Record<string, unknown>)["node_id"]) : undefined;
    return typeof id === "string" ? [id] : [];
  });
}

function edgesOf(value: unknown): { from: string; to: string }[] {
  if (!Array.isArray(value)) return [];
  return value.flatMap((item: unknown) => {
    const [from, to] = Array.isArray(item) ? (item as unknown[]) : ends(item);
    return typeof from === "string" && typeof to === "string" ? [{ from, to }] : [];
  });
}

function ends(item: unknown): unknown[] {
  if (typeof item !== "object" || item === null) return [];
  const edge = item as Record<string, unknown>;
  return [edge["from"] ?? edge["source"], edge["to"] ?? edge["target"]];
}
