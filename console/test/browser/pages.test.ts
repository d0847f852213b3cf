import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { accessibilityFaults, scrollsSideways } from "./checks";
import { englishLeft } from "./english";
import { setScenery } from "./scenery";
import { setStage, type Stage } from "./stage";

let stage: Stage;
const pages: Record<string, string[]> = {};

beforeAll(async () => {
  stage = await setStage();
  pages["en"] = (await setScenery(stage.client, "en")).pages;
  pages["zh-CN"] = (await setScenery(stage.client, "zh-CN")).pages;
});

afterAll(() => stage.close());

/** Waits until nothing on the page says that it is still loading. */
async function settle(page: Page): Promise<void> {
  await page.waitForSelector("h1");
  await page.waitForFunction(() => ![...document.querySelectorAll("main [role=status] .unseen")].some((note) => /^(Loading|加载中)/.test(note.textContent ?? "")));
}

const looks = [
  { language: "en", scheme: "light", width: 1280 },
  { language: "zh-CN", scheme: "dark", width: 360 },
] as const;

for (const look of looks) {
  it(`every page is accessible and fits (${look.language}, ${look.scheme}, ${look.width} wide)`, async () => {
    const page = await stage.open("/", { ...look, reducedMotion: true, traced: false });
    for (const path of pages[look.language] ?? []) {
      await page.goto(stage.url + path);
      await settle(page);
      expect.soft(await accessibilityFaults(page), path).toEqual([]);
      expect.soft(await scrollsSideways(page), `${path} scrolls sideways`).toBe(false);
      expect.soft(await page.title(), path).toMatch(/\S+ · Runwire$/);
      if (look.language === "zh-CN") expect.soft(await englishLeft(page), `${path} has English words`).toEqual([]);
    }
  }, 120_000);
}
