import { afterAll, beforeAll, expect, it } from "vitest";
import { accessibilityViolations, scrollsVertically, scrollsSideways, waitForLoaded } from "./checks";
import { untranslatedTexts } from "./untranslated";
import { createFixtures } from "./fixtures";
import { startEnvironment, type Environment } from "./environment";

let environment: Environment;
const pages: Record<string, string[]> = {};

beforeAll(async () => {
  environment = await startEnvironment();
  pages["en"] = await createFixtures(environment.client, "en");
  pages["zh-CN"] = await createFixtures(environment.client, "zh-CN");
});

afterAll(() => environment.close());

const variants = [
  { language: "en", scheme: "light", width: 1280 },
  { language: "zh-CN", scheme: "dark", width: 360 },
] as const;

for (const options of variants) {
  it(`every page is accessible and fits (${options.language}, ${options.scheme}, ${options.width} wide)`, async () => {
    const page = await environment.open("/", { ...options, reducedMotion: true, traced: false });
    for (const path of pages[options.language] ?? []) {
      await page.goto(environment.url + path);
      await waitForLoaded(page);
      expect.soft(await accessibilityViolations(page), path).toEqual([]);
      expect.soft(await scrollsSideways(page), `${path} scrolls sideways`).toBe(false);
      expect.soft(await scrollsVertically(page), `${path} scrolls vertically`).toBe(false);
      expect.soft(await page.title(), path).toMatch(/\S+ · Runwire$/);
      // An English page proves that the check works.
      if (options.language === "en") expect.soft(await untranslatedTexts(page), path).not.toEqual([]);
      else expect.soft(await untranslatedTexts(page), `${path} has English words`).toEqual([]);
    }
  }, 120_000);
}
