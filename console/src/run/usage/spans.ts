import type { Part, RunStep, RunViewSnapshot, UsageCall } from "@runwire/client";

/** Something that took time. */
export interface Span {
  id: string;
  kind: "step" | "tool" | "thinking" | "text" | "interaction" | "subagent";
  /** The step's or the tool's name; of others what is known, or nothing. */
  name: string;
  /** In milliseconds since the epoch. */
  startedAt: number;
  endedAt?: number;
  /** How many steps it is inside of. */
  depth: number;
  hasFailed: boolean;
  /** The tokens of a step's model calls. */
  tokens?: number;
}

type Seen = Pick<RunViewSnapshot, "parts" | "steps" | "usage">;

/** Finds everything of a run that took time, in the order it began. */
export function spansOf({ parts, steps, usage }: Seen): Span[] {
  const tokens = new Map<string, number>();
  for (const call of usage?.calls ?? []) {
    if (call.stepId !== undefined) tokens.set(call.stepId, (tokens.get(call.stepId) ?? 0) + call.totalTokens);
  }
  const depths = depthsOf(steps);
  const spans = steps.map((step, place): Span => {
    const told = tokens.get(step.stepId);
    return {
      id: `step ${place}`,
      kind: "step",
      name: step.name,
      startedAt: step.startedAt,
      ...(step.endedAt !== undefined && { endedAt: step.endedAt }),
      depth: depths[place] ?? 0,
      hasFailed: step.status === "failed",
      ...(told !== undefined && { tokens: told }),
    };
  });
  const inside = new Map<string, number>();
  steps.forEach((step, place) => inside.set(step.stepId, (depths[place] ?? 0) + 1));
  for (const part of parts) {
    const span = spanOf(part);
    if (span !== undefined) spans.push({ ...span, depth: part.stepId === undefined ? 0 : (inside.get(part.stepId) ?? 0) });
  }
  // What begins with a step stands below it: sorting keeps the order of equals, and steps come first.
  return spans.sort((one, other) => one.startedAt - other.startedAt);
}

/** Tells how many steps each step is inside of. */
function depthsOf(steps: readonly RunStep[]): number[] {
  const around: RunStep[] = [];
  return steps.map((step) => {
    for (let last = around.at(-1); last !== undefined && endOf(last) < endOf(step); last = around.at(-1)) around.pop();
    while (around.length > 0 && endOf(around.at(-1)) <= step.startedAt) around.pop();
    around.push(step);
    return around.length - 1;
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

/** The time and the tokens of everything of one name. */
export interface Sum {
  name: string;
  times: number;
  failures: number;
  /** In milliseconds. */
  duration: number;
  longest: number;
  promptTokens: number;
  completionTokens: number;
  totalTokens: number;
}

/** Sums up steps by name; what was told outside of any step has an empty name. */
export function sumSteps({ steps, usage }: Seen, now: number): Sum[] {
  const sums = new Sums();
  const names = new Map(steps.map((step) => [step.stepId, step.name]));
  for (const step of steps) sums.addTime(step.name, (step.endedAt ?? now) - step.startedAt, step.status === "failed");
  for (const call of usage?.calls ?? []) sums.addTokens(call.step ?? names.get(call.stepId ?? "") ?? "", call);
  return sums.list();
}

/** Sums up tools by name. */
export function sumTools({ parts, usage }: Seen, now: number): Sum[] {
  const sums = new Sums();
  for (const part of parts) {
    if (part.kind === "tool") sums.addTime(part.name, part.durationMs ?? (part.endedAt ?? now) - part.startedAt, part.status === "failure");
  }
  for (const call of usage?.calls ?? []) if (call.tool !== undefined) sums.addTokens(call.tool, call);
  return sums.list();
}

/** Tells how long a run waited for people; questions that were open together count once. */
export function waitedFor({ parts }: Pick<Seen, "parts">, now: number): number {
  let [sum, end] = [0, -Infinity];
  for (const part of parts) {
    if (part.kind !== "interaction") continue;
    const until = part.endedAt ?? now;
    sum += Math.max(0, until - Math.max(part.startedAt, end));
    end = Math.max(end, until);
  }
  return sum;
}

/** Waiting that is longer than this share of everything else is drawn shorter. */
const waitingShare = 0.15;

/** Places moments of a run on a line. */
export interface Axis {
  /** Where a moment lies, from 0 to 100. */
  at(moment: number): number;
  /** Whether waiting for people is drawn shorter than it was. */
  isCompressed: boolean;
}

/** Makes the line that a run is drawn on: hours of waiting for a person would leave no room for what the run did. */
export function axisOf({ parts }: Pick<Seen, "parts">, startedAt: number, endedAt: number): Axis {
  const waits: { from: number; to: number }[] = [];
  for (const part of parts) {
    if (part.kind !== "interaction") continue;
    const last = waits.at(-1);
    const to = Math.min(part.endedAt ?? endedAt, endedAt);
    if (last !== undefined && part.startedAt <= last.to) last.to = Math.max(last.to, to);
    else waits.push({ from: part.startedAt, to });
  }
  const waited = waits.reduce((sum, { from, to }) => sum + Math.max(0, to - from), 0);
  const active = Math.max(1, endedAt - startedAt - waited);
  const isCompressed = waited > active * waitingShare * 2;
  const pace = isCompressed ? (active * waitingShare) / waited : 1;
  const length = (moment: number) => {
    let drawn = moment - startedAt;
    for (const { from, to } of waits) drawn -= Math.max(0, Math.min(moment, to) - from) * (1 - pace);
    return drawn;
  };
  const whole = Math.max(1, length(endedAt));
  return { at: (moment) => Math.max(0, Math.min(100, (length(moment) / whole) * 100)), isCompressed };
}

class Sums {
  readonly #sums = new Map<string, Sum>();

  addTime(name: string, duration: number, hasFailed: boolean): void {
    const sum = this.#of(name);
    sum.times++;
    if (hasFailed) sum.failures++;
    sum.duration += Math.max(0, duration);
    sum.longest = Math.max(sum.longest, duration);
  }

  addTokens(name: string, call: UsageCall): void {
    const sum = this.#of(name);
    sum.promptTokens += call.promptTokens;
    sum.completionTokens += call.completionTokens;
    sum.totalTokens += call.totalTokens;
  }

  list(): Sum[] {
    return [...this.#sums.values()].sort((one, other) => other.duration - one.duration);
  }

  #of(name: string): Sum {
    let sum = this.#sums.get(name);
    if (sum === undefined) {
      sum = { name, times: 0, failures: 0, duration: 0, longest: 0, promptTokens: 0, completionTokens: 0, totalTokens: 0 };
      this.#sums.set(name, sum);
    }
    return sum;
  }
}
