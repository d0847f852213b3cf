import { afterAll, beforeAll, expect, it } from "vitest";
import { accessibilityFaults, scrollsAway, scrollsSideways, settle } from "./checks";
import { englishLeft } from "./english";
import { setScenery } from "./scenery";
import { setStage, type Stage } from "./stage";

let stage: Stage;
const pages: Record<string, string[]> = {};

beforeAll(async () => {
  stage = await setStage();
  pages["en"] = await setScenery(stage.client, "en");
  pages["zh-CN"] = await setScenery(stage.client, "zh-CN");
});

afterAll(() => stage.close());

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
      expect.soft(await scrollsAway(page), `${path} scrolls its frame away`).toBe(false);
      expect.soft(await page.title(), path).toMatch(/\S+ · Runwire$/);
      // A page in English shows that the check finds something.
      if (look.language === "en") expect.soft(await englishLeft(page), path).not.toEqual([]);
      else expect.soft(await englishLeft(page), `${path} has English words`).toEqual([]);
    }
  }, 120_000);
}
