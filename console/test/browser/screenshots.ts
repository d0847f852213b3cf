import { mkdirSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, it } from "vitest";
import { settle } from "./checks";
import { setScenery } from "./scenery";
import { setStage, type Stage } from "./stage";

// Pictures to look at, not to compare: `npm run screenshots`, into the folder that SCREENSHOTS names, else a new one.
const looks = [
  { language: "en", scheme: "light", width: 1280, height: 800 },
  { language: "zh-CN", scheme: "dark", width: 1280, height: 800 },
  { language: "en", scheme: "dark", width: 360, height: 740 },
  { language: "zh-CN", scheme: "light", width: 360, height: 740 },
] as const;

let stage: Stage;
const folder = process.env["SCREENSHOTS"] ?? mkdtempSync(join(tmpdir(), "runwire-screenshots-"));
const pages: Record<string, string[]> = {};

beforeAll(async () => {
  stage = await setStage();
  for (const language of ["en", "zh-CN"] as const) pages[language] = await setScenery(stage.client, language);
});

afterAll(async () => {
  await stage.close();
  process.stdout.write(`the pictures are in ${folder}\n`);
});

for (const look of looks) {
  it(`every page has a picture (${look.language}, ${look.scheme}, ${look.width} wide)`, async () => {
    mkdirSync(folder, { recursive: true });
    const page = await stage.open("/", { ...look, reducedMotion: true, traced: false });
    for (const [place, path] of (pages[look.language] ?? []).entries()) {
      await page.goto(stage.url + path);
      await settle(page);
      const name = path.slice(1).replace(/[^\w-]+/g, "_").slice(0, 50);
      await page.screenshot({ path: join(folder, `${look.width}-${look.scheme}-${look.language}-${String(place).padStart(2, "0")}-${name}.png`) });
    }
  }, 120_000);
}
