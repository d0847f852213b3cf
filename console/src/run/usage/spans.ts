import type { Part, RunStep, RunViewSnapshot, UsageCall } from "@runwire/client";

/** An operation with its duration. */
export interface Span {
  id: string;
  kind: "step" | "tool" | "thinking" | "text" | "interaction" | "subagent";
  /** Name of the step or tool; may be empty for others. */
  name: string;
  /** In milliseconds since the epoch. */
  startedAt: number;
  endedAt?: number;
  /** Number of enclosing steps. */
  depth: number;
  hasFailed: boolean;
  /** Tokens of a step's model calls. */
  tokens?: number;
}

type UsageInput = Pick<RunViewSnapshot, "parts" | "steps" | "usage">;

/** Returns the operations of a run in the order they started. */
export function spansOf({ parts, steps, usage }: UsageInput): Span[] {
  const tokens = new Map<string, number>();
  for (const call of usage?.calls ?? []) {
    if (call.stepId !== undefined) tokens.set(call.stepId, (tokens.get(call.stepId) ?? 0) + call.totalTokens);
  }
  const depths = depthsOf(steps);
  const spans = steps.map((step, index): Span => {
    const stepTokens = tokens.get(step.stepId);
    return {
      id: `step ${index}`,
      kind: "step",
      name: step.name,
      startedAt: step.startedAt,
      ...(step.endedAt !== undefined && { endedAt: step.endedAt }),
      depth: depths[index] ?? 0,
      hasFailed: step.status === "failed",
      ...(stepTokens !== undefined && { tokens: stepTokens }),
    };
  });
  const innerDepths = new Map<string, number>();
  steps.forEach((step, index) => innerDepths.set(step.stepId, (depths[index] ?? 0) + 1));
  for (const part of parts) {
    const span = spanOf(part);
    if (span !== undefined) spans.push({ ...span, depth: part.stepId === undefined ? 0 : (innerDepths.get(part.stepId) ?? 0) });
  }
  // The sort is stable, so a step precedes operations that start at the same time.
  return spans.sort((one, other) => one.startedAt - other.startedAt);
}

/** Returns the number of enclosing steps of each step. */
function depthsOf(steps: readonly RunStep[]): number[] {
  const enclosing: RunStep[] = [];
  return steps.map((step) => {
    for (let last = enclosing.at(-1); last !== undefined && endOf(last) < endOf(step); last = enclosing.at(-1)) enclosing.pop();
    while (enclosing.length > 0 && endOf(enclosing.at(-1)) <= step.startedAt) enclosing.pop();
    enclosing.push(step);
    return enclosing.length - 1;
  });
}

function endOf(step: RunStep | undefined): number {
  return step?.endedAt ?? Infinity;
}

function spanOf(part: Part): Omit<Span, "depth"> | undefined {
  const times = { id: part.id, startedAt: part.startedAt, ...(part.endedAt !== undefined && { endedAt: part.endedAt }) };
  switch (part.kind) {
    case "tool":
      return { ...times, kind: "tool", name: part.name, hasFailed: part.status === "failure" };
    case "thinking":
      return { ...times, kind: "thinking", name: part.stage ?? "", hasFailed: false };
    case "text":
      return { ...times, kind: "text", name: "", hasFailed: part.status === "failed" };
    case "interaction":
      return { ...times, kind: "interaction", name: part.title ?? part.name ?? "", hasFailed: false };
    case "subagent":
      return { ...times, kind: "subagent", name: part.name ?? "", hasFailed: part.status === "failed" };
    default:
      return undefined;
  }
}

/** Time and tokens of all operations of one name. */
export interface Aggregate {
  name: string;
  count: number;
  failures: number;
  /** In milliseconds. */
  duration: number;
  longest: number;
  promptTokens: number;
  completionTokens: number;
  totalTokens: number;
}

/** Aggregates steps by name; model calls outside of steps have an empty name. */
export function aggregateSteps({ steps, usage }: UsageInput, now: number): Aggregate[] {
  const aggregator = new Aggregator();
  const names = new Map(steps.map((step) => [step.stepId, step.name]));
  for (const step of steps) aggregator.addTime(step.name, (step.endedAt ?? now) - step.startedAt, step.status === "failed");
  for (const call of usage?.calls ?? []) aggregator.addTokens(call.step ?? names.get(call.stepId ?? "") ?? "", call);
  return aggregator.list();
}

/** Aggregates tools by name. */
export function aggregateTools({ parts, usage }: UsageInput, now: number): Aggregate[] {
  const aggregator = new Aggregator();
  for (const part of parts) {
    if (part.kind === "tool") aggregator.addTime(part.name, part.durationMs ?? (part.endedAt ?? now) - part.startedAt, part.status === "failure");
  }
  for (const call of usage?.calls ?? []) if (call.tool !== undefined) aggregator.addTokens(call.tool, call);
  return aggregator.list();
}

/** Returns how long a run waited for people; interactions that overlap count once. */
export function waitingTime({ parts }: Pick<UsageInput, "parts">, now: number): number {
  let [aggregate, end] = [0, -Infinity];
  for (const part of parts) {
    if (part.kind !== "interaction") continue;
    const endedAt = part.endedAt ?? now;
    aggregate += Math.max(0, endedAt - Math.max(part.startedAt, end));
    end = Math.max(end, endedAt);
  }
  return aggregate;
}

/** Waiting that exceeds this share of the active time is compressed. */
const maxWaitingShare = 0.15;

/** Time axis of the waterfall. */
export interface Axis {
  /** Returns the position of a time from 0 to 100. */
  at(time: number): number;
  /** Whether waiting for people is compressed. */
  isCompressed: boolean;
}

/** Returns the time axis of a run. Long waiting for people is compressed to leave room for the rest. */
export function axisOf({ parts }: Pick<UsageInput, "parts">, startedAt: number, endedAt: number): Axis {
  const waits: { from: number; to: number }[] = [];
  for (const part of parts) {
    if (part.kind !== "interaction") continue;
    const last = waits.at(-1);
    const to = Math.min(part.endedAt ?? endedAt, endedAt);
    if (last !== undefined && part.startedAt <= last.to) last.to = Math.max(last.to, to);
    else waits.push({ from: part.startedAt, to });
  }
  const waited = waits.reduce((aggregate, { from, to }) => aggregate + Math.max(0, to - from), 0);
  const active = Math.max(1, endedAt - startedAt - waited);
  const isCompressed = waited > active * maxWaitingShare * 2;
  const compression = isCompressed ? (active * maxWaitingShare) / waited : 1;
  const length = (time: number) => {
    let position = time - startedAt;
    for (const { from, to } of waits) position -= Math.max(0, Math.min(time, to) - from) * (1 - compression);
    return position;
  };
  const total = Math.max(1, length(endedAt));
  return { at: (time) => Math.max(0, Math.min(100, (length(time) / total) * 100)), isCompressed };
}

class Aggregator {
  readonly #aggregates = new Map<string, Aggregate>();

  addTime(name: string, duration: number, hasFailed: boolean): void {
    const aggregate = this.#aggregateOf(name);
    aggregate.count++;
    if (hasFailed) aggregate.failures++;
    aggregate.duration += Math.max(0, duration);
    aggregate.longest = Math.max(aggregate.longest, duration);
  }

  addTokens(name: string, call: UsageCall): void {
    const aggregate = this.#aggregateOf(name);
    aggregate.promptTokens += call.promptTokens;
    aggregate.completionTokens += call.completionTokens;
    aggregate.totalTokens += call.totalTokens;
  }

  list(): Aggregate[] {
    return [...this.#aggregates.values()].sort((one, other) => other.duration - one.duration);
  }

  #aggregateOf(name: string): Aggregate {
    let aggregate = this.#aggregates.get(name);
    if (aggregate === undefined) {
      aggregate = { name, count: 0, failures: 0, duration: 0, longest: 0, promptTokens: 0, completionTokens: 0, totalTokens: 0 };
      this.#aggregates.set(name, aggregate);
    }
    return aggregate;
  }
}
