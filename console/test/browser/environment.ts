import { mkdirSync, mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";
import { chromium, type Browser, type BrowserContext, type Page } from "playwright-core";
import { build } from "vite";
import { onTestFinished } from "vitest";
import { Runwire } from "@runwire/client";
import { Server } from "./server";

/** Options of a page: language, colour scheme, size. */
export interface PageOptions {
  language?: "en" | "zh-CN";
  scheme?: "light" | "dark";
  width?: number;
  height?: number;
  reducedMotion?: boolean;
  /** Whether a trace is recorded for failures. It slows down the page. */
  traced?: boolean;
}

/** A server and a browser for one test file. */
export interface Environment {
  server: Server;
  /** URL of the console. */
  url: string;
  client: Runwire;
  /** Opens a page in a new browser context; closes it and fails on page errors when the test ends. */
  open(path: string, options?: PageOptions): Promise<Page>;
  close(): Promise<void>;
}

/**
 * Starts the server and the browser. The console is the one in the binary, unless CONSOLE_FROM is a folder with another
 * build, or `source` to build the sources.
 */
export async function startEnvironment(): Promise<Environment> {
  const bundle = process.env["CONSOLE_FROM"] === "source" ? await buildSources() : process.env["CONSOLE_FROM"];
  const server = await Server.start();
  const browser = await chromium.launch({
    executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium",
    args: [
      "--disable-dev-shm-usage",
      ...(process.getuid?.() === 0 ? ["--no-sandbox"] : []),
      // A page fulfilled by the test has no network origin, and could not open a WebSocket to this machine.
      ...(bundle === undefined ? [] : ["--disable-features=LocalNetworkAccessChecks"]),
    ],
  });
  return {
    server,
    url: server.url,
    client: new Runwire({ url: server.url }),
    open: (path, options = {}) => openPage(browser, server.url, bundle, path, options),
    close: async () => {
      await browser.close();
      await server.close();
    },
  };
}

async function openPage(browser: Browser, origin: string, bundle: string | undefined, path: string, options: PageOptions): Promise<Page> {
  const context = await browser.newContext({
    locale: options.language ?? "en",
    colorScheme: options.scheme ?? "light",
    viewport: { width: options.width ?? 1280, height: options.height ?? 800 },
    reducedMotion: options.reducedMotion === true ? "reduce" : "no-preference",
  });
  if (bundle !== undefined) await serveBundle(context, origin, bundle);
  const isTraced = options.traced !== false;
  if (isTraced) await context.tracing.start({ snapshots: true });
  const page = await context.newPage();
  page.setDefaultTimeout(15_000);
  const pageErrors = collectErrors(page, origin);
  onTestFinished(async ({ task }) => {
    const hasFailed = task.result?.state === "fail" || pageErrors.length > 0;
    if (hasFailed) await saveArtifacts(page, task.name, isTraced);
    else if (isTraced) await context.tracing.stop();
    await context.close();
    if (pageErrors.length > 0) throw new Error(`the page has errors:\n${pageErrors.join("\n")}`);
  });
  await page.goto(origin + path);
  await page.waitForSelector("h1");
  return page;
}

/** Collects script errors, violations of the content security policy and requests to other servers. */
function collectErrors(page: Page, origin: string): string[] {
  const pageErrors: string[] = [];
  page.on("pageerror", (error) => pageErrors.push(`${page.url()}: ${error.stack ?? error.message}`));
  page.on("console", (message) => {
    // Failed requests while the server is stopped are expected.
    const isExpected = /^(Failed to load resource|WebSocket connection to)/.test(message.text());
    if (message.type() === "error" && !isExpected) pageErrors.push(`${page.url()}: ${message.text()}`);
  });
  page.on("request", (request) => {
    const address = new URL(request.url());
    if (/^(http|ws)/.test(address.protocol) && address.host !== new URL(origin).host) pageErrors.push(`${page.url()} asked for ${request.url()}`);
  });
  return pageErrors;
}

/** Saves a screenshot and a trace of a failed test. */
async function saveArtifacts(page: Page, test: string, isTraced: boolean): Promise<void> {
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

/** Serves another build instead of the one in the binary, with the same content security policy. */
async function serveBundle(context: BrowserContext, origin: string, folder: string): Promise<void> {
  // Otherwise the browser would ask for permission to open a WebSocket to this machine.
  await context.grantPermissions(["local-network-access"], { origin });
  const policy = (await fetch(`${origin}/`)).headers.get("content-security-policy") ?? "";
  await context.route(/^http:\/\/[^/]+\/(?!v1\/|healthz|readyz|openapi)/, async (route) => {
    const { pathname } = new URL(route.request().url());
    const name = extname(pathname) === "" ? "/index.html" : pathname;
    const headers = { "content-security-policy": policy, "content-type": mediaTypes[extname(name)] ?? "" };
    await route.fulfill({ body: readFileSync(folder + name), headers });
  });
}
