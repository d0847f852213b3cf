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

/** A node of a tree of thoughts. */
export interface TotNode {
  id: string;
  /** Text of the thought; empty for the root. */
  text: string;
  /** The candidate as it was sent. */
  value: unknown;
  /** The root has depth 0. */
  depth: number;
  parent?: string;
  children: readonly string[];
  score?: number;
  /** `abandoned`: it was chosen, and then left by backtracking. */
  status: "candidate" | "chosen" | "abandoned";
  /** Ordinal of its first visit, from 1; undefined for the root and for nodes that were not visited. */
  visit?: number;
  /** Creation time in milliseconds since the epoch. */
  at: number;
}

/** A tree of thoughts. */
export interface TotTree {
  /** In order of creation; the first is the root. */
  nodes: readonly TotNode[];
  /** Ids from the root to the current node. */
  path: readonly string[];
  /** Backtracking steps, oldest first. */
  backtracks: readonly { at: number; from: string; to: string; reason?: string }[];
}

/** A node of a graph of thoughts. */
export interface GotNode {
  id: string;
  status: "planned" | "running" | "completed" | "failed";
  summary?: string;
  error?: string;
  /** In milliseconds since the epoch. */
  startedAt?: number;
  endedAt?: number;
  /** Id of the node whose expansion added it. */
  addedBy?: string;
}

/** An edge: node `to` depends on node `from`. */
export interface GotEdge {
  from: string;
  to: string;
  /** Whether the edge is inferred from the order of events instead of sent by the agent. */
  isInferred: boolean;
}

/** A graph of thoughts. */
export interface GotGraph {
  nodes: readonly GotNode[];
  edges: readonly GotEdge[];
  /** Number of nodes and edges that the agent reported. */
  nodeCount?: number;
  edgeCount?: number;
}

const ROOT = "0";

/** Number of edges above which no more are inferred: such a graph is unreadable. */
const MAX_INFERRED_EDGES = 2000;

/** Folds events into a tree of thoughts. */
export class TotFold {
  readonly #nodes = new Map<string, TotNode>();
  #path = [ROOT];
  /** Ids of the last expansion; scores refer to them by index. */
  #candidates: string[] = [];
  #backtracks: TotTree["backtracks"] = [];
  #visits = 0;
  #cached: TotTree | undefined;

  expanded(event: TotExpandedEvent, at: number): void {
    this.#cached = undefined;
    if (this.#nodes.size === 0) this.#nodes.set(ROOT, { id: ROOT, text: "", value: null, depth: 0, children: [], status: "chosen", at });
    const parent = this.#current();
    const children = [...parent.children];
    const values: unknown[] = Array.isArray(event.candidates) ? event.candidates : [event.candidates];
    this.#candidates = values.map((value) => {
      const text = textOf(value);
      // A candidate that is repeated after backtracking is the same node.
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
    this.#cached = undefined;
    const scores: unknown[] = Array.isArray(event.scores) ? event.scores : [];
    this.#candidates.forEach((id, index) => {
      const node = this.#nodes.get(id);
      const score = scores[index];
      if (node === undefined) return;
      const chosen = index === event.chosen;
      const visit = chosen && { status: "chosen" as const, visit: node.visit ?? ++this.#visits };
      this.#nodes.set(id, { ...node, ...(typeof score === "number" && { score }), ...visit });
      if (chosen) this.#path = [...this.#path, id];
    });
    this.#candidates = [];
  }

  backtracked(event: TotBacktrackedEvent, at: number): void {
    this.#cached = undefined;
    if (this.#nodes.size === 0) return;
    const depth = typeof event.to_depth === "number" ? Math.max(0, Math.trunc(event.to_depth)) : 0;
    const from = this.#current().id;
    for (const id of this.#path.slice(depth + 1)) {
      const node = this.#nodes.get(id);
      if (node !== undefined) this.#nodes.set(id, { ...node, status: "abandoned" });
    }
    this.#path = this.#path.slice(0, depth + 1);
    const backtrack = { at, from, to: this.#current().id, ...(event.reason !== undefined && { reason: event.reason }) };
    this.#backtracks = [...this.#backtracks, backtrack];
  }

  snapshot(): TotTree | undefined {
    if (this.#nodes.size === 0) return undefined;
    this.#cached ??= { nodes: [...this.#nodes.values()], path: this.#path, backtracks: this.#backtracks };
    return this.#cached;
  }

  #current(): TotNode {
    const node = this.#nodes.get(this.#path.at(-1) ?? ROOT);
    return node ?? { id: ROOT, text: "", value: null, depth: 0, children: [], status: "chosen", at: 0 };
  }
}

/** Folds events into a graph of thoughts. */
export class GotFold {
  readonly #nodes = new Map<string, GotNode>();
  #edges: GotEdge[] = [];
  #nodeCount: number | undefined;
  #edgeCount: number | undefined;
  /** Expansions with nodes that have not appeared yet; the agent may send only their number. */
  #expansions: { node: string; missing: number }[] = [];
  #cached: GotGraph | undefined;

  planned(event: GotPlannedEvent): void {
    this.#cached = undefined;
    this.#nodeCount = countOf(event.node_count) ?? this.#nodeCount;
    this.#edgeCount = countOf(event.edge_count) ?? this.#edgeCount;
    for (const id of idsOf(event.node_ids)) if (!this.#nodes.has(id)) this.#nodes.set(id, { id, status: "planned" });
  }

  expanded(event: GotExpandedEvent): void {
    this.#cached = undefined;
    const ids = idsOf(event.nodes_added);
    for (const id of ids) this.#add(id, event.node_id);
    const added = countOf(event.nodes_added);
    if (added !== undefined) this.#expansions.push({ node: event.node_id, missing: added });
    this.#nodeCount = sum(this.#nodeCount, added ?? ids.length);
    for (const edge of edgesOf(event.edges_added)) this.#addEdge(edge.from, edge.to, false);
    this.#edgeCount = sum(this.#edgeCount, countOf(event.edges_added) ?? edgesOf(event.edges_added).length);
  }

  started(event: GotNodeStartedEvent, at: number): void {
    this.#cached = undefined;
    const known = this.#nodes.get(event.node_id) ?? this.#createUnannounced(event.node_id);
    if (known.startedAt === undefined) this.#inferEdges(event.node_id);
    this.#nodes.set(event.node_id, { ...known, status: "running", startedAt: at });
  }

  completed(event: GotNodeCompletedEvent, at: number): void {
    this.#cached = undefined;
    const node = this.#nodes.get(event.node_id) ?? this.#createUnannounced(event.node_id);
    const summary = event.result_summary !== undefined && { summary: event.result_summary };
    this.#nodes.set(event.node_id, { ...node, status: "completed", endedAt: at, ...summary });
  }

  failed(event: GotNodeFailedEvent, at: number): void {
    this.#cached = undefined;
    const node = this.#nodes.get(event.node_id) ?? this.#createUnannounced(event.node_id);
    this.#nodes.set(event.node_id, { ...node, status: "failed", endedAt: at, error: event.error });
  }

  snapshot(): GotGraph | undefined {
    if (this.#nodes.size === 0) return undefined;
    const counts = {
      ...(this.#nodeCount !== undefined && { nodeCount: this.#nodeCount }),
      ...(this.#edgeCount !== undefined && { edgeCount: this.#edgeCount }),
    };
    this.#cached ??= { nodes: [...this.#nodes.values()], edges: [...this.#edges], ...counts };
    return this.#cached;
  }

  /** Creates a node that was not announced, and assigns it to an expansion with missing nodes. */
  #createUnannounced(id: string): GotNode {
    const open = this.#expansions.filter((expansion) => expansion.missing > 0);
    const by = open.find((expansion) => `${id}`.startsWith(expansion.node)) ?? open[0];
    if (by === undefined) return { id, status: "planned" };
    by.missing--;
    return this.#add(id, by.node);
  }

  #add(id: string, by: string): GotNode {
    const node: GotNode = { ...(this.#nodes.get(id) ?? { id, status: "planned" }), addedBy: by };
    this.#nodes.set(id, node);
    this.#addEdge(by, id, true);
    return node;
  }

  /** Infers edges to a node that starts: from each completed node without a completed successor. */
  #inferEdges(id: string): void {
    if (this.#edges.length >= MAX_INFERRED_EDGES || this.#edges.some((edge) => edge.to === id)) return;
    const withSuccessor = new Set(this.#edges.flatMap((edge) => (this.#nodes.get(edge.to)?.status === "completed" ? [edge.from] : [])));
    for (const node of this.#nodes.values()) {
      if (node.status === "completed" && node.id !== id && !withSuccessor.has(node.id)) this.#addEdge(node.id, id, true);
    }
  }

  #addEdge(from: string, to: string, isInferred: boolean): void {
    const known = this.#edges.findIndex((edge) => edge.from === from && edge.to === to);
    if (known === -1) this.#edges.push({ from, to, isInferred });
    else if (!isInferred) this.#edges[known] = { from, to, isInferred };
  }
}

/** Returns the text to show for a candidate, which may be a string or an object. */
function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  if (typeof value === "object" && value !== null) {
    for (const name of ["thought", "content", "text", "name"]) {
      const text = (value as Record<string, unknown>)[name];
      if (typeof text === "string") return text;
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
    const [from, to] = Array.isArray(item) ? (item as unknown[]) : endsOf(item);
    return typeof from === "string" && typeof to === "string" ? [{ from, to }] : [];
  });
}

function endsOf(item: unknown): unknown[] {
  if (typeof item !== "object" || item === null) return [];
  const edge = item as Record<string, unknown>;
  return [edge["from"] ?? edge["source"], edge["to"] ?? edge["target"]];
}
