import { afterAll, beforeAll, expect, it } from "vitest";
import { setStage, type Stage } from "./stage";

const count = 10_000;
const writers = 16;
let stage: Stage;

beforeAll(async () => {
  stage = await setStage();
  const write = async (from: number) => {
    for (let at = from; at < count; at += writers) {
      await stage.client.runs.write(`run-${at}`, [{ type: "run_start", message: `Question ${at}` }, { reply: "Yes." }], { dialect: "loom", end: true });
    }
  };
  await Promise.all(Array.from({ length: writers }, (_, from) => write(from)));
}, 120_000);

afterAll(() => stage.close());

it("ten thousand runs can be scrolled to the first one, and only those in sight are drawn", async () => {
  const page = await stage.open("/runs", { traced: false });
  await page.waitForSelector("[data-row]");
  const oldest = await oldestRun();
  const result = await page.evaluate(async (oldest) => {
    const main = document.querySelector("main");
    if (main === null) throw new Error("no main");
    const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
    const long: number[] = [];
    new PerformanceObserver((list) => long.push(...list.getEntries().map((entry) => entry.duration))).observe({ type: "longtask" });
    let most = 0;
    while (main.querySelector(`[data-row="${oldest}"]`) === null) {
      main.scrollTop += 1000;
      most = Math.max(most, main.querySelectorAll("[data-row]").length);
      await frame();
    }
    return { most, long: long.map(Math.round).sort((left, right) => right - left) };
  }, oldest);
  // How long things took depends on the machine, so it is told, not asserted.
  process.stdout.write(`scrolled ${count} runs: ${result.long.length} tasks over 50 ms, the longest ${result.long[0] ?? 0} ms\n`);
  expect(result.most).toBeLessThan(100);
  await page.getByText("10,000 shown").waitFor();
});

async function oldestRun(): Promise<string> {
  let before: string | undefined;
  let oldest = "";
  do {
    const page = await stage.client.runs.list({ before, limit: 200 });
    oldest = page.runs.at(-1)?.run_id ?? oldest;
    before = page.next ?? undefined;
  } while (before !== undefined);
  return oldest;
}
