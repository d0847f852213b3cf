import { isClosed, type RunViewSnapshot } from "@runwire/client";
import type { Dictionary } from "../text";

/** Text of a run's current operation, or of its end. */
export interface OperationText {
  text: string;
  /** Name of the enclosing step. */
  step: string | undefined;
  /** Start time of the operation, or end time of the run; undefined if unknown. */
  at: number | undefined;
  isOver: boolean;
}

/** Returns the text of a run's current operation, for the operation line and for screen readers. */
export function operationText(view: RunViewSnapshot, t: Dictionary): OperationText {
  const texts = t.run.operation;
  if (isClosed(view.status)) return { text: endText(view, t), step: undefined, at: view.endedAt, isOver: true };
  if (view.status === "pending") return { text: texts.pending, step: undefined, at: undefined, isOver: false };
  const { operation } = view;
  const inStep = { step: operation.step, at: operation.since, isOver: false };
  if (view.cancel?.requestedAt !== undefined) {
    const { by, requestedAt } = view.cancel;
    return { text: by === undefined ? texts.stopping : texts.stoppingFor(by), step: operation.step, at: requestedAt, isOver: false };
  }
  switch (operation.kind) {
    case "waiting":
      return { text: operation.name === undefined ? texts.waiting : texts.waitingFor(operation.name), ...inStep };
    case "tool":
      return { text: toolText(operation.name, operation.parallel, t), ...inStep };
    case "step":
      return { text: operation.name === undefined ? texts.idle : texts.step(operation.name), ...inStep };
    default:
      return { text: texts[operation.kind], ...inStep };
  }
}

function toolText(name: string | undefined, parallel: number | undefined, t: Dictionary): string {
  const tool = name === undefined || name === "" ? t.run.operation.someTool : name;
  return parallel === undefined ? t.run.operation.tool(tool) : t.run.operation.tools(tool, parallel);
}

function endText(view: RunViewSnapshot, t: Dictionary): string {
  const texts = t.run.operation;
  if (view.status === "failed") return view.error === undefined ? texts.failed : texts.failedWith(view.error.message);
  if (view.status === "cancelled") return view.cancel?.reason === undefined ? texts.cancelled : texts.cancelledWith(view.cancel.reason);
  return texts.completed;
}
