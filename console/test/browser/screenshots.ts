import { mkdirSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, it } from "vitest";
import { waitForLoaded } from "./checks";
import { createFixtures } from "./fixtures";
import { startEnvironment, type Environment } from "./environment";

// Screenshots for review, not for comparison: `npm run screenshots` writes them to the folder SCREENSHOTS, or a new one.
const variants = [
  { language: "en", scheme: "light", width: 1280, height: 800 },
  { language: "zh-CN", scheme: "dark", width: 1280, height: 800 },
  { language: "en", scheme: "dark", width: 360, height: 740 },
  { language: "zh-CN", scheme: "light", width: 360, height: 740 },
] as const;

let environment: Environment;
const folder = process.env["SCREENSHOTS"] ?? mkdtempSync(join(tmpdir(), "runwire-screenshots-"));
const pages: Record<string, string[]> = {};

beforeAll(async () => {
  environment = await startEnvironment();
  for (const language of ["en", "zh-CN"] as const) pages[language] = await createFixtures(environment.client, language);
});

afterAll(async () => {
  await environment.close();
  process.stdout.write(`the screenshots are in ${folder}\n`);
});

for (const options of variants) {
  it(`every page has a screenshot (${options.language}, ${options.scheme}, ${options.width} wide)`, async () => {
    mkdirSync(folder, { recursive: true });
    const page = await environment.open("/", { ...options, reducedMotion: true, traced: false });
    for (const [index, path] of (pages[options.language] ?? []).entries()) {
      await page.goto(environment.url + path);
      await waitForLoaded(page);
      const name = path.slice(1).replace(/[^\w-]+/g, "_").slice(0, 50);
      await page.screenshot({ path: join(folder, `${options.width}-${options.scheme}-${options.language}-${String(index).padStart(2, "0")}-${name}.png`) });
    }
  }, 120_000);
}
