import "./dom.js";
import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, rmSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { cleanup, render, waitFor } from "@testing-library/react";
import { build } from "esbuild";
import type { ComponentType } from "react";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Runwire } from "../src/index.js";
import { Server } from "./server.js";

const HERE = path.dirname(fileURLToPath(import.meta.url));
const FOLDER = path.join(HERE, ".examples");
const README_URL = "http://127.0.0.1:7420";

interface Example {
  title: string;
  language: string;
  code: string;
  /** Expected output; `…` matches anything. */
  output: string | undefined;
}

/** Extracts the examples of the README. */
function examples(): Example[] {
  const readme = readFileSync(path.join(HERE, "../README.md"), "utf8");
  return readme.split(/^## /m).flatMap((section) => {
    const [code] = section.matchAll(/```(tsx?)\n(.*?)```/gs);
    const [output] = section.matchAll(/```text\n(.*?)```/gs);
    return code === undefined ? [] : [{ title: section.split("\n", 1)[0] ?? "", language: code[1] ?? "", code: code[2] ?? "", output: output?.[1] }];
  });
}

let server: Server;

beforeAll(async () => {
  server = await Server.start();
  mkdirSync(FOLDER, { recursive: true });
});

afterAll(async () => {
  cleanup();
  await server.remove();
  rmSync(FOLDER, { recursive: true, force: true });
});

/** Bundles an example with the sources of the library; returns the file. */
async function bundleExample(example: Example): Promise<string> {
  const file = path.join(FOLDER, `${example.title.replaceAll(/\W+/g, "-")}.mjs`);
  await build({
    stdin: { contents: example.code.replaceAll(README_URL, server.url), resolveDir: HERE, loader: example.language as "ts" | "tsx" },
    outfile: file,
    bundle: true,
    format: "esm",
    target: "es2022",
    jsx: "automatic",
    external: ["react"],
    alias: { "@runwire/client/react": path.join(HERE, "../src/react/index.ts"), "@runwire/client": path.join(HERE, "../src/index.ts") },
  });
  return file;
}

test.each(examples().filter((example) => example.language === "ts"))("the example “$title” prints what the README says", async (example) => {
  const { stdout } = await promisify(execFile)(process.execPath, [await bundleExample(example)]);
  const pattern = (example.output ?? "").split("…").map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  expect(stdout).toMatch(new RegExp(`^${pattern.join(".*")}$`));
});

test("the example for React shows a run", async () => {
  const [example] = examples().filter(({ language }) => language === "tsx");
  const { App } = (await import(await bundleExample(example as Example))) as { App: ComponentType<{ run: string }> };
  const client = new Runwire({ url: server.url });
  const run = await client.runs.create({ agent: "thought-tree", message: "24" });
  const page = render(<App run={run.run_id} />);
  await waitFor(async () => expect(page.container.textContent).toBe((await client.runs.message(run.run_id)).mainContent || "none"), { timeout: 30_000 });
});

test("the README has at least six short examples", () => {
  expect(examples().length).toBeGreaterThanOrEqual(6);
  for (const { title, code } of examples()) expect(code.trim().split("\n").filter((line) => line !== "").length, title).toBeLessThanOrEqual(13);
});
