import { afterAll, beforeAll, expect, it } from "vitest";
import { runSays } from "./person";
import { setStage, type Stage } from "./stage";

const count = 50_000;
const batch = 500;
let stage: Stage;

beforeAll(async () => {
  stage = await setStage();
});

afterAll(() => stage.close());

/** A run as agents have them: mostly text, now and then a thought, a call with progress. */
function* events(): Generator<object> {
  yield { type: "run.started", message: "Tell me everything" };
  for (let at = 1; at < count - 1; ) {
    const turn = Math.floor(at / 100);
    const left = () => at < count - 1;
    for (let delta = 0; delta < 10 && left(); delta++, at++) yield { type: "thinking.delta", message_id: `think-${turn}`, content: `thought ${at} ` };
    for (let delta = 0; delta < 80 && left(); delta++, at++) yield { type: "text.delta", message_id: `text-${turn}`, content: delta % 20 === 19 ? `**word** ${at}.\n\n` : `word ${at} ` };
    if (left()) (yield { type: "tool.called", call_id: `call-${turn}`, name: "look_up", arguments: { page: turn } }), at++;
    for (let delta = 0; delta < 8 && left(); delta++, at++) yield { type: "tool.progress", call_id: `call-${turn}`, progress: delta * 12 };
    if (left()) (yield { type: "tool.finished", call_id: `call-${turn}`, name: "look_up", status: "success", result: { found: turn } }), at++;
  }
  yield { type: "run.completed" };
}

/** A task of the page's main thread, in microseconds: how long it took, and how much of that it had a processor. */
interface Task {
  name: string;
  pid: number;
  tid: number;
  dur?: number;
  tdur?: number;
}

/** Reads the tasks of the page from a trace of the browser, in milliseconds. */
function tasksIn(trace: Buffer): { wall: number; worked: number }[] {
  const { traceEvents } = JSON.parse(trace.toString()) as { traceEvents: (Task & { args?: { name?: string } })[] };
  const isMain = new Set(traceEvents.filter(({ name, args }) => name === "thread_name" && args?.name === "CrRendererMain").map(({ pid, tid }) => `${pid} ${tid}`));
  return traceEvents
    .filter(({ name, pid, tid, dur }) => name === "ThreadControllerImpl::RunTask" && dur !== undefined && isMain.has(`${pid} ${tid}`))
    .map(({ dur = 0, tdur }) => ({ wall: dur / 1000, worked: (tdur ?? dur) / 1000 }));
}

it("a run of 50,000 events stays smooth while it streams", async () => {
  await stage.client.runs.create({ run_id: "long" });
  const page = await stage.open("/runs/long", { traced: false });
  await page.waitForSelector("[data-run-bar]");
  const browser = page.context().browser();
  await browser?.startTracing(page, { categories: ["toplevel"] });
  let body: object[] = [];
  for (const event of events()) {
    body.push(event);
    if (body.length < batch) continue;
    await stage.client.runs.write("long", body, { dialect: "runwire" });
    body = [];
  }
  await stage.client.runs.write("long", body, { dialect: "runwire" });
  page.setDefaultTimeout(60_000);
  await runSays(page, "Completed");
  const tasks = tasksIn((await browser?.stopTracing()) ?? Buffer.alloc(0));
  const { counts } = await stage.client.runs.get("long");
  const worked = Math.round(Math.max(...tasks.map((task) => task.worked)));
  const wall = Math.round(Math.max(...tasks.map((task) => task.wall)));
  const long = tasks.filter((task) => task.worked > 50).length;
  process.stdout.write(`${counts.events} events: ${long} tasks worked for more than 50 ms, the longest for ${worked} ms (${wall} ms with waiting for a processor)\n`);
  expect(counts.events).toBeGreaterThanOrEqual(count);
  expect(tasks.length).toBeGreaterThan(100);
  // What a busy machine takes away from the page is not the page's doing.
  expect(worked).toBeLessThanOrEqual(200);
}, 120_000);
