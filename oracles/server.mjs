// Starts a real server for the clients of an oracle, and lets each of their checks use it.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";

/** The built-in agents, at a pace for programs; `demo` is meant by clients that cannot name one. */
export const DEMOS = `default_agent = "demo"\n\n${["demo", "failing", "endless"].map((name) => `[agents.${name}]\nkind = "demo"\nfast = true\n`).join("\n")}`;

/** Waits until the server says where it listens. */
function addressOf(child) {
  return new Promise((resolve, reject) => {
    let said = "";
    const listen = (bytes) => {
      said += bytes;
      const found = /http:\/\/127\.0\.0\.1:\d+/.exec(said);
      if (found) resolve(found[0]);
    };
    child.stdout.on("data", listen);
    child.stderr.on("data", listen);
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`the server ended with ${code}: ${said}`)));
  });
}

/** Fails where nothing happens for a long time. */
export function withPatience(promise, name) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${name}: nothing happened for a long time`)), 30_000);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** Gathers what clients complain about on the console, and still shows it. */
function listenToComplaints() {
  const complaints = [];
  for (const level of ["warn", "error"]) {
    const say = console[level];
    console[level] = (...words) => {
      complaints.push(words.map(String).join(" "));
      say(...words);
    };
  }
  return complaints;
}

/** Keeps the console silent while a client complains of what it must complain of. */
export async function quietly(doing) {
  const { warn, error } = console;
  console.warn = console.error = () => {};
  try {
    return await doing();
  } finally {
    Object.assign(console, { warn, error });
  }
}

/** Starts a server with a configuration and a store of its own; `stop` ends it and removes both. */
export async function startServer(program, config) {
  const folder = mkdtempSync(path.join(tmpdir(), "runwire-oracle-"));
  const file = path.join(folder, "runwire.toml");
  writeFileSync(file, config);
  const options = ["--listen", "127.0.0.1:0", "--store", `sqlite:${folder}/runwire.db`, "--config", file];
  const server = spawn(path.resolve(program), ["serve", ...options], { stdio: ["ignore", "pipe", "pipe"] });
  const exited = new Promise((resolve) => server.once("exit", resolve));
  const stop = async () => {
    server.kill("SIGTERM");
    await exited;
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    return { address: await addressOf(server), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Runs checks, each a function of the server's address, and tells how many failed. A complaint is a failure. */
export async function runChecks(program, config, checks) {
  const server = await startServer(program, config);
  const complaints = listenToComplaints();
  let failed = 0;
  try {
    for (const [name, check] of Object.entries(checks)) {
      complaints.length = 0;
      try {
        await withPatience(check(server.address), name);
        assert.deepEqual(complaints, [], "the client complained");
        console.log(`${name}: ok`);
      } catch (error) {
        failed++;
        console.log(`${name}: ${error.stack ?? error}`);
      }
    }
  } finally {
    await server.stop();
  }
  return failed;
}

/** The program that is named on the command line. */
export function programToCheck() {
  const program = process.argv[2];
  if (program !== undefined) return program;
  console.error(`usage: node ${path.basename(process.argv[1])} <path of the runwire program>`);
  process.exit(2);
}

/** Waits until something is so, which `look` tells. */
export async function until(look) {
  for (;;) {
    const found = await look();
    if (found) return found;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
