/** What a run is doing at this moment. */
export interface Now {
  /** `idle`: nothing that it tells of; of a closed run, nothing at all. */
  kind: "starting" | "thinking" | "text" | "tool" | "step" | "waiting" | "idle";
  /** The tool's, the step's or the question's name. */
  name?: string;
  /** Since when, in milliseconds since the epoch. */
  since: number;
  /** The step that it is in. */
  step?: string;
  /** How many more things of the same kind go on side by side. */
  beside?: number;
}

/** `node`: a node of a thought graph, or a subagent; it goes on inside a step, and is told as one. */
type Kind = "thinking" | "text" | "tool" | "step" | "node";

interface Open {
  kind: Kind;
  name: string | undefined;
  since: number;
}

/** Keeps what has begun and not ended. */
export class Activities {
  readonly #open = new Map<string, Open>();

  /** Takes note that something begins, or of its name. */
  begin(kind: Kind, id: string, name: string | undefined, since: number): void {
    const key = `${kind} ${id}`;
    const known = this.#open.get(key);
    this.#open.set(key, { kind, name: name ?? known?.name, since: known?.since ?? since });
  }

  end(kind: Kind, id: string): void {
    this.#open.delete(`${kind} ${id}`);
  }

  clear(): void {
    this.#open.clear();
  }

  /** Tells the newest of what is going on; a step only where nothing inside it is known. */
  newest(): Now | undefined {
    let inner: Open | undefined;
    let step: Open | undefined;
    const counts = { thinking: 0, text: 0, tool: 0, step: 0, node: 0 };
    for (const open of this.#open.values()) {
      counts[open.kind]++;
      if (open.kind === "step") step = open;
      else inner = open;
    }
    const found = inner ?? step;
    if (found === undefined) return undefined;
    return {
      kind: found.kind === "node" ? "step" : found.kind,
      since: found.since,
      ...(found.name !== undefined && { name: found.name }),
      ...(inner !== undefined && step?.name !== undefined && { step: step.name }),
      ...(counts[found.kind] > 1 && { beside: counts[found.kind] - 1 }),
    };
  }
}
