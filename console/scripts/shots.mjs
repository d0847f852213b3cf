// Takes screenshots of the pages, light and dark, in both languages, wide and narrow.
// usage: node scripts/shots.mjs URL FOLDER [PATH…]
import { mkdirSync } from "node:fs";
import { chromium } from "playwright-core";

const [url = "http://127.0.0.1:7420", folder = "shots", ...paths] = process.argv.slice(2);
const pages = paths.length > 0 ? paths : ["/runs", "/inbox", "/threads", "/agents", "/agents/demo"];
const looks = [
  { name: "light", scheme: "light", language: "en", width: 1280, height: 800 },
  { name: "dark-zh", scheme: "dark", language: "zh-CN", width: 1280, height: 800 },
  { name: "phone", scheme: "light", language: "zh-CN", width: 360, height: 740 },
];

mkdirSync(folder, { recursive: true });
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
for (const look of looks) {
  const context = await browser.newContext({
    viewport: { width: look.width, height: look.height },
    colorScheme: look.scheme,
    locale: look.language,
    deviceScaleFactor: 1,
  });
  const page = await context.newPage();
  page.on("pageerror", (error) => process.stderr.write(`${look.name}: ${error.message}\n`));
  page.on("console", (message) => message.type() === "error" && process.stderr.write(`${look.name}: ${message.text()}\n`));
  for (const path of pages) {
    await page.goto(url + path);
    await page.waitForSelector("h1");
    // Lists are asked for after the page is drawn; what stays open (a stream) never falls silent.
    await page.waitForTimeout(1200);
    const name = path.replace(/^\//, "").replace(/[^\w.-]+/g, "_") || "home";
    await page.screenshot({ path: `${folder}/${name}.${look.name}.png` });
  }
  await context.close();
}
await browser.close();
