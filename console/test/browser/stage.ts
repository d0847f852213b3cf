import { mkdirSync, mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";
import { chromium, type Browser, type BrowserContext, type Page } from "playwright-core";
import { build } from "vite";
import { onTestFinished } from "vitest";
import { Runwire } from "@runwire/client";
import { Server } from "./server";

/** How a page is opened: a language, a theme, a width. */
export interface Look {
  language?: "en" | "zh-CN";
  scheme?: "light" | "dark";
  width?: number;
  height?: number;
  reducedMotion?: boolean;
  /** Whether a trace is kept for the case that the test fails. It costs time in the page. */
  traced?: boolean;
}

/** A server and a browser of its own for one file of tests. */
export interface Stage {
  server: Server;
  /** Where the console is. */
  url: string;
  client: Runwire;
  /** Opens a page in a browser profile of its own; it is closed, and what it complained about told, when the test ends. */
  open(path: string, look?: Look): Promise<Page>;
  close(): Promise<void>;
}

/**
 * Starts the server and the browser. The console is the one in the binary; for whoever works on it, CONSOLE_FROM is a
 * folder with another build, or `source` for one of the sources as they are.
 */
export async function setStage(): Promise<Stage> {
  const bundle = process.env["CONSOLE_FROM"] === "source" ? await buildSources() : process.env["CONSOLE_FROM"];
  const server = await Server.start();
  const browser = await chromium.launch({
    executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium",
    args: [
      "--disable-dev-shm-usage",
      ...(process.getuid?.() === 0 ? ["--no-sandbox"] : []),
      // A page that the test hands to the browser came from no network, and may then open no WebSocket to this machine.
      ...(bundle === undefined ? [] : ["--disable-features=LocalNetworkAccessChecks"]),
    ],
  });
  return {
    server,
    url: server.url,
    client: new Runwire({ url: server.url }),
    open: (path, look = {}) => openPage(browser, server.url, bundle, path, look),
    close: async () => {
      await browser.close();
      await server.close();
    },
  };
}

async function openPage(browser: Browser, origin: string, bundle: string | undefined, path: string, look: Look): Promise<Page> {
  const context = await browser.newContext({
    locale: look.language ?? "en",
    colorScheme: look.scheme ?? "light",
    viewport: { width: look.width ?? 1280, height: look.height ?? 800 },
    reducedMotion: look.reducedMotion === true ? "reduce" : "no-preference",
  });
  if (bundle !== undefined) await serveBundle(context, origin, bundle);
  const isTraced = look.traced !== false;
  if (isTraced) await context.tracing.start({ snapshots: true });
  const page = await context.newPage();
  page.setDefaultTimeout(15_000);
  const complaints = watch(page, origin);
  onTestFinished(async ({ task }) => {
    const hasFailed = task.result?.state === "fail" || complaints.length > 0;
    if (hasFailed) await keepEvidence(page, task.name, isTraced);
    else if (isTraced) await context.tracing.stop();
    await context.close();
    if (complaints.length > 0) throw new Error(`the page complained:\n${complaints.join("\n")}`);
  });
  await page.goto(origin + path);
  await page.waitForSelector("h1");
  return page;
}

/** Gathers what must never happen: errors of scripts, of the content security policy, requests to other servers. */
function watch(page: Page, origin: string): string[] {
  const complaints: string[] = [];
  page.on("pageerror", (error) => complaints.push(`${page.url()}: ${error.stack ?? error.message}`));
  page.on("console", (message) => {
    // A request that fails while the server is away is what is being tested, not a fault of the page.
    const isAway = /^(Failed to load resource|WebSocket connection to)/.test(message.text());
    if (message.type() === "error" && !isAway) complaints.push(`${page.url()}: ${message.text()}`);
  });
  page.on("request", (request) => {
    const address = new URL(request.url());
    if (/^(http|ws)/.test(address.protocol) && address.host !== new URL(origin).host) complaints.push(`${page.url()} asked for ${request.url()}`);
  });
  return complaints;
}

/** Keeps what the page looked like, and what led to it. */
async function keepEvidence(page: Page, test: string, isTraced: boolean): Promise<void> {
  mkdirSync(join(tmpdir(), "runwire-failures"), { recursive: true });
  const folder = mkdtempSync(join(tmpdir(), "runwire-failures", `${test.replace(/[^\w-]+/g, "-").slice(0, 60)}-`));
  await page.screenshot({ path: join(folder, "page.png") }).catch(() => undefined);
  if (isTraced) await page.context().tracing.stop({ path: join(folder, "trace.zip") });
  process.stderr.write(`“${test}” failed: a screenshot and a trace are in ${folder}\n`);
}

const mediaTypes: Record<string, string> = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml" };

async function buildSources(): Promise<string> {
  const outDir = mkdtempSync(join(tmpdir(), "runwire-bundle-"));
  await build({ root: join(import.meta.dirname, "../.."), build: { outDir, emptyOutDir: true }, logLevel: "error" });
  return outDir;
}

/** Puts another build in the place of the one in the binary, under the same content security policy. */
async function serveBundle(context: BrowserContext, origin: string, folder: string): Promise<void> {
  // A page that did not come from this machine would have to ask a person before it may open a WebSocket to it.
  await context.grantPermissions(["local-network-access"], { origin });
  const policy = (await fetch(`${origin}/`)).headers.get("content-security-policy") ?? "";
  await context.route(/^http:\/\/[^/]+\/(?!v1\/|healthz|readyz|openapi)/, async (route) => {
    const { pathname } = new URL(route.request().url());
    const name = extname(pathname) === "" ? "/index.html" : pathname;
    const headers = { "content-security-policy": policy, "content-type": mediaTypes[extname(name)] ?? "" };
    await route.fulfill({ body: readFileSync(folder + name), headers });
  });
}
