import path from "node:path";
import { expect, test } from "vitest";
import { type HandledEvent, MessageFold, MessageStreamHandler, RunView, type RunwireEvent } from "../src/index.js";
import { cases, lines } from "./vectors.js";

type Fields = Record<string, unknown>;

const ODD: unknown[] = [undefined, null, 0, -1.5, "", "x", [], {}, [null], { type: 1 }, true];

/** Numbers that look random and are the same in every run. */
function* numbers(seed: number): Generator<number, never> {
  for (let state = seed; ; ) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    yield state / 2 ** 32;
  }
}

const random = numbers(42);

/** How often every vector is damaged, each time elsewhere. */
const ROUNDS = Array.from({ length: 10 });

function pick<T>(items: readonly T[]): T {
  return items[Math.floor(random.next().value * items.length)] as T;
}

/** Damages one field somewhere in a frame, but not what it is. */
function damaged(frame: Fields, kept: readonly string[]): Fields {
  const copy = structuredClone(frame);
  let place = copy;
  for (;;) {
    const keys = Object.keys(place).filter((key) => place !== copy || !kept.includes(key));
    if (keys.length === 0) return copy;
    const key = pick(keys);
    const inner = place[key];
    if (typeof inner === "object" && inner !== null && random.next().value < 0.7) place = inner as Fields;
    else {
      place[key] = pick(ODD);
      return copy;
    }
  }
}

test("no frame of streaming-engine, however damaged, makes the handler fail", () => {
  for (const { folder } of ROUNDS.flatMap(() => cases())) {
    const handler = new MessageStreamHandler();
    for (const frame of lines<Fields>(path.join(folder, "streaming-engine.ndjson"))) {
      handler.handleEvent((random.next().value < 0.5 ? damaged(frame, ["type"]) : frame) as unknown as HandledEvent);
    }
    handler.handleEnd();
    expect(typeof handler.message.mainContent).toBe("string");
  }
});

test("no event, however damaged, makes a fold fail", () => {
  for (const { folder } of ROUNDS.flatMap(() => cases())) {
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
