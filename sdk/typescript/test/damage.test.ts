import path from "node:path";
import { expect, test } from "vitest";
import { type HandledEvent, MessageFold, MessageStreamHandler, RunView, type RunwireEvent } from "../src/index.js";
import { vectors, lines } from "./vectors.js";

type Fields = Record<string, unknown>;

const INVALID_VALUES: unknown[] = [undefined, null, 0, -1.5, "", "x", [], {}, [null], { type: 1 }, true];

/** Pseudo-random numbers from a fixed seed. */
function* numbers(seed: number): Generator<number, never> {
  for (let state = seed; ; ) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    yield state / 2 ** 32;
  }
}

const random = numbers(42);

/** How often every vector is damaged, each time at another field. */
const ROUNDS = Array.from({ length: 10 });

function pick<T>(items: readonly T[]): T {
  return items[Math.floor(random.next().value * items.length)] as T;
}

/** Replaces one field somewhere in a frame, except the protected ones. */
function damaged(frame: Fields, protectedFields: readonly string[]): Fields {
  const copy = structuredClone(frame);
  let target = copy;
  for (;;) {
    const keys = Object.keys(target).filter((key) => target !== copy || !protectedFields.includes(key));
    if (keys.length === 0) return copy;
    const key = pick(keys);
    const inner = target[key];
    if (typeof inner === "object" && inner !== null && random.next().value < 0.7) target = inner as Fields;
    else {
      target[key] = pick(INVALID_VALUES);
      return copy;
    }
  }
}

test("the handler never throws on damaged frames of streaming-engine", () => {
  for (const { folder } of ROUNDS.flatMap(() => vectors())) {
    const handler = new MessageStreamHandler();
    for (const frame of lines<Fields>(path.join(folder, "streaming-engine.ndjson"))) {
      handler.handleEvent((random.next().value < 0.5 ? damaged(frame, ["type"]) : frame) as unknown as HandledEvent);
    }
    handler.handleEnd();
    expect(typeof handler.message.mainContent).toBe("string");
  }
});

test("the folds never throw on damaged events", () => {
  for (const { folder } of ROUNDS.flatMap(() => vectors())) {
    const events = lines<RunwireEvent>(path.join(folder, "runwire.ndjson"));
    const run = events[0]?.run_id ?? "";
    const [view, fold] = [new RunView(run), new MessageFold(run)];
    for (const each of events) {
      const event = (random.next().value < 0.5 ? damaged(each as unknown as Fields, ["type", "run_id", "seq", "at", "thread_id"]) : each) as unknown as RunwireEvent;
      view.apply(event);
      fold.apply(event, Date.parse(event.at));
    }
    expect(new Set(view.snapshot().parts.map((part) => part.id)).size).toBe(view.snapshot().parts.length);
    expect(fold.snapshot().messageId).toBe(run);
  }
});
