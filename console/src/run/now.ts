import { isClosed, type RunViewSnapshot } from "@runwire/client";
import type { Dictionary } from "../text";

/** What a run is doing, or how it ended. */
export interface Doing {
  words: string;
  /** Where: the step it is in. */
  step: string | undefined;
  /** Since when, or when it ended; nothing where that is not known. */
  at: number | undefined;
  over: boolean;
}

/** Puts into words what a run is doing at this moment: for the line that is always in sight, and for screen readers. */
export function doing(view: RunViewSnapshot, t: Dictionary): Doing {
  const say = t.run.now;
  if (isClosed(view.status)) return { words: ended(view, t), step: undefined, at: view.endedAt, over: true };
  if (view.status === "pending") return { words: say.pending, step: undefined, at: undefined, over: false };
  const { now } = view;
  const inStep = { step: now.step, at: now.since, over: false };
  if (view.cancel?.requestedAt !== undefined) {
    const { by, requestedAt } = view.cancel;
    return { words: by === undefined ? say.stopping : say.stoppingFor(by), step: now.step, at: requestedAt, over: false };
  }
  switch (now.kind) {
    case "waiting":
      return { words: now.name === undefined ? say.waiting : say.waitingFor(now.name), ...inStep };
    case "tool":
      return { words: toolWords(now.name, now.beside, t), ...inStep };
    case "step":
      return { words: now.name === undefined ? say.idle : say.step(now.name), ...inStep };
    default:
      return { words: say[now.kind], ...inStep };
  }
}

function toolWords(name: string | undefined, beside: number | undefined, t: Dictionary): string {
  const tool = name === undefined || name === "" ? t.run.now.someTool : name;
  return beside === undefined ? t.run.now.tool(tool) : t.run.now.tools(tool, beside);
}

function ended(view: RunViewSnapshot, t: Dictionary): string {
  const say = t.run.now;
  if (view.status === "failed") return view.error === undefined ? say.failed : say.failedWith(view.error.message);
  if (view.status === "cancelled") return view.cancel?.reason === undefined ? say.cancelled : say.cancelledWith(view.cancel.reason);
  return say.completed;
}
