import { afterAll, beforeAll, expect, it } from "vitest";
import { waitForOperation } from "./actions";
import { startEnvironment, type Environment } from "./environment";

const count = 50_000;
const batch = 500;
let environment: Environment;

beforeAll(async () => {
  environment = await startEnvironment();
});

afterAll(() => environment.close());

/** A typical run: mostly text, with some thinking and tool calls with progress. */
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

/** A task of the page's main thread: wall time and CPU time in microseconds. */
interface Task {
  name: string;
  pid: number;
  tid: number;
  dur?: number;
  tdur?: number;
}

/** Returns the tasks of the page in a browser trace, in milliseconds. */
function tasksIn(trace: Buffer): { wall: number; cpu: number }[] {
  const { traceEvents } = JSON.parse(trace.toString()) as { traceEvents: (Task & { args?: { name?: string } })[] };
  const isMain = new Set(traceEvents.filter(({ name, args }) => name === "thread_name" && args?.name === "CrRendererMain").map(({ pid, tid }) => `${pid} ${tid}`));
  return traceEvents
    .filter(({ name, pid, tid, dur }) => name === "ThreadControllerImpl::RunTask" && dur !== undefined && isMain.has(`${pid} ${tid}`))
    .map(({ dur = 0, tdur }) => ({ wall: dur / 1000, cpu: (tdur ?? dur) / 1000 }));
}

it("a run of 50,000 events stays smooth while it streams", async () => {
  await environment.client.runs.create({ run_id: "long" });
  const page = await environment.open("/runs/long", { traced: false });
  await page.waitForSelector("[data-run-bar]");
  const browser = page.context().browser();
  await browser?.startTracing(page, { categories: ["toplevel"] });
  let body: object[] = [];
  for (const event of events()) {
    body.push(event);
    if (body.length < batch) continue;
    await environment.client.runs.write("long", body, { dialect: "runwire" });
    body = [];
  }
  await environment.client.runs.write("long", body, { dialect: "runwire" });
  page.setDefaultTimeout(60_000);
  await waitForOperation(page, "Completed");
  const tasks = tasksIn((await browser?.stopTracing()) ?? Buffer.alloc(0));
  const { counts } = await environment.client.runs.get("long");
  const cpu = Math.round(Math.max(...tasks.map((task) => task.cpu)));
  const wall = Math.round(Math.max(...tasks.map((task) => task.wall)));
  const long = tasks.filter((task) => task.cpu > 50).length;
  process.stdout.write(`${counts.events} events: ${long} tasks worked for more than 50 ms, the longest for ${cpu} ms (${wall} ms with waiting for a processor)\n`);
  expect(counts.events).toBeGreaterThanOrEqual(count);
  expect(tasks.length).toBeGreaterThan(100);
  // CPU time: independent of the load of the machine.
  expect(cpu).toBeLessThanOrEqual(200);
}, 120_000);
