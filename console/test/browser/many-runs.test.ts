import { afterAll, beforeAll, expect, it } from "vitest";
import { startEnvironment, type Environment } from "./environment";

const count = 10_000;
const writers = 16;
let environment: Environment;

beforeAll(async () => {
  environment = await startEnvironment();
  const write = async (from: number) => {
    for (let at = from; at < count; at += writers) {
      await environment.client.runs.write(`run-${at}`, [{ type: "run_start", message: `Question ${at}` }, { reply: "Yes." }], { dialect: "loom", end: true });
    }
  };
  await Promise.all(Array.from({ length: writers }, (_, from) => write(from)));
}, 120_000);

afterAll(() => environment.close());

it("ten thousand runs scroll to the first one, and only visible rows are rendered", async () => {
  const page = await environment.open("/runs", { traced: false });
  await page.waitForSelector("[data-row]");
  const oldest = await oldestRun();
  const result = await page.evaluate(async (oldest) => {
    const main = document.querySelector("main");
    if (main === null) throw new Error("no main");
    const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
    const long: number[] = [];
    new PerformanceObserver((list) => long.push(...list.getEntries().map((entry) => entry.duration))).observe({ type: "longtask" });
    let maxRows = 0;
    while (main.querySelector(`[data-row="${oldest}"]`) === null) {
      main.scrollTop += 1000;
      maxRows = Math.max(maxRows, main.querySelectorAll("[data-row]").length);
      await frame();
    }
    return { maxRows, long: long.map(Math.round).sort((left, right) => right - left) };
  }, oldest);
  // Durations depend on the machine, so they are printed, not asserted.
  process.stdout.write(`scrolled ${count} runs: ${result.long.length} tasks over 50 ms, the longest ${result.long[0] ?? 0} ms\n`);
  expect(result.maxRows).toBeLessThan(100);
  await page.getByText("10,000 shown").waitFor();
});

async function oldestRun(): Promise<string> {
  let before: string | undefined;
  let oldest = "";
  do {
    const page = await environment.client.runs.list({ before, limit: 200 });
    oldest = page.runs.at(-1)?.run_id ?? oldest;
    before = page.next ?? undefined;
  } while (before !== undefined);
  return oldest;
}
