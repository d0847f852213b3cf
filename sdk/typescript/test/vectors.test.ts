import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { MessageFold, RunView, type RunwireEvent } from "../src/index.js";
import { continues } from "../src/fold/joined-texts.js";
import { vectors, lines } from "./vectors.js";

function expected(folder: string): unknown {
  return JSON.parse(readFileSync(path.join(folder, "message.json"), "utf8"));
}

describe("the message fold agrees with the server's fold", () => {
  test.each(vectors())("$name", ({ folder }) => {
    const folds = new Map<string, MessageFold>();
    for (const event of lines<RunwireEvent>(path.join(folder, "runwire.ndjson"))) {
      const fold = folds.get(event.run_id) ?? new MessageFold(event.run_id);
      folds.set(event.run_id, fold);
      fold.apply(event, Date.parse(event.at));
    }
    expect([...folds.values()].map((fold) => fold.snapshot())).toEqual(expected(folder));
  });
});

describe("the run view agrees with the message", () => {
  test.each(vectors())("$name", ({ folder }) => {
    const views = new Map<string, RunView>();
    for (const event of lines<RunwireEvent>(path.join(folder, "runwire.ndjson"))) {
      const view = views.get(event.run_id) ?? new RunView(event.run_id);
      views.set(event.run_id, view);
      view.apply(event);
    }
    const actual = [...views.values()].map((view) => {
      const { runId, status, parts, usage, steps, endedAt } = view.snapshot();
      expect(new Set(parts.map((part) => part.id)).size).toBe(parts.length);
      const text = (kind: "text" | "thinking"): string => {
        let joined = "";
        let previous: string | undefined;
        for (const part of parts) {
          if (part.kind !== kind || "role" in part || part.text === "") continue;
          const isContinuation = previous === undefined || (kind === "text" && continues(previous, part.messageId));
          joined += (isContinuation ? "" : "\n\n") + part.text;
          previous = part.messageId;
        }
        return joined;
      };
      return {
        messageId: runId,
        status,
        mainContent: text("text"),
        thinkingContent: text("thinking"),
        // A result may belong to a call of the previous run, and arguments may start in another order than they end.
        tools: parts.flatMap((part) => (part.kind === "tool" && part.arguments !== undefined ? [part.callId] : [])).sort(),
        steps: steps.map((step) => step.stepId),
        total: usage?.totalTokens,
        endTime: endedAt,
      };
    });
    const messages = expected(folder) as Record<string, any>[];
    expect(actual).toEqual(
      messages.map((message) => ({
        messageId: message["messageId"],
        status: message["status"],
        mainContent: message["mainContent"],
        thinkingContent: message["thinkingContent"],
        tools: message["toolCalls"].map((call: { toolId: string }) => call.toolId).sort(),
        steps: message["steps"].map((step: { stepId: string }) => step.stepId),
        total: message["usage"]?.totalTokens,
        endTime: message["metadata"].endTime,
      })),
    );
  });
});
