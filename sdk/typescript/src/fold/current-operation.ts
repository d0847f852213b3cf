/** The operation that a run is currently executing. */
export interface CurrentOperation {
  /** `idle`: no known operation, or the run has ended. */
  kind: "starting" | "thinking" | "text" | "tool" | "step" | "waiting" | "idle";
  /** Name of the tool or the step, or title of the interaction. */
  name?: string;
  /** Start time in milliseconds since the epoch. */
  since: number;
  /** Name of the enclosing step. */
  step?: string;
  /** Number of other operations of the same kind that run in parallel. */
  parallel?: number;
}

/** `node`: a node of a thought graph, or a subagent. It runs inside a step, and is reported as a step. */
type OperationKind = "thinking" | "text" | "tool" | "step" | "node";

interface OpenOperation {
  kind: OperationKind;
  name: string | undefined;
  since: number;
}

/** The operations that have started and not ended. */
export class OpenOperations {
  readonly #open = new Map<string, OpenOperation>();

  /** Adds an operation, or sets the name of an open one. */
  begin(kind: OperationKind, id: string, name: string | undefined, since: number): void {
    const key = `${kind} ${id}`;
    const known = this.#open.get(key);
    this.#open.set(key, { kind, name: name ?? known?.name, since: known?.since ?? since });
  }

  end(kind: OperationKind, id: string): void {
    this.#open.delete(`${kind} ${id}`);
  }

  clear(): void {
    this.#open.clear();
  }

  /** Returns the newest open operation; a step only if no operation inside it is open. */
  newest(): CurrentOperation | undefined {
    let inner: OpenOperation | undefined;
    let step: OpenOperation | undefined;
    const counts = { thinking: 0, text: 0, tool: 0, step: 0, node: 0 };
    for (const open of this.#open.values()) {
      counts[open.kind]++;
      if (open.kind === "step") step = open;
      else inner = open;
    }
    const current = inner ?? step;
    if (current === undefined) return undefined;
    return {
      kind: current.kind === "node" ? "step" : current.kind,
      since: current.since,
      ...(current.name !== undefined && { name: current.name }),
      ...(inner !== undefined && step?.name !== undefined && { step: step.name }),
      ...(counts[current.kind] > 1 && { parallel: counts[current.kind] - 1 }),
    };
  }
}
