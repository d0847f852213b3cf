import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../../..");

/** Path of the server binary under test. */
export const PROGRAM = process.env["RUNWIRE_PROGRAM"] ?? path.join(ROOT, "target/debug/runwire");

/** Folder of the golden vectors. */
export const VECTORS = path.join(ROOT, "vectors");

const AGENTS = ["demo", "thought-tree", "thought-graph", "failing", "endless"];

/** A server process with its own store; it can be killed and restarted on the same port. */
export class Server {
  readonly #folder = mkdtempSync(path.join(tmpdir(), "runwire-sdk-"));
  #child: ChildProcess | undefined;
  url = "";

  /** Starts a server on a free port; `settings` is added to its configuration file. */
  static async start(settings = ""): Promise<Server> {
    const server = new Server();
    const agents = AGENTS.map((name) => `[agents.${name}]\nkind = "demo"\nfast = true\n`);
    writeFileSync(path.join(server.#folder, "runwire.toml"), `${settings}\n${agents.join("\n")}`);
    await server.#spawn("127.0.0.1:0");
    return server;
  }

  /** Kills the server with SIGKILL. */
  async kill(): Promise<void> {
    await this.#terminate("SIGKILL");
  }

  /** Stops the server with SIGTERM. */
  async stop(): Promise<void> {
    await this.#terminate("SIGTERM");
  }

  /** Starts the server again on the same port. */
  async restart(): Promise<void> {
    await this.#spawn(new URL(this.url).host);
  }

  /** Kills the server and deletes its store. */
  async remove(): Promise<void> {
    await this.#terminate("SIGKILL");
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #spawn(listen: string): Promise<void> {
    const options = ["--listen", listen, "--store", `sqlite:${this.#folder}/runwire.db`, "--config", `${this.#folder}/runwire.toml`];
    const child = spawn(PROGRAM, ["serve", ...options], { stdio: ["ignore", "pipe", "pipe"] });
    this.#child = child;
    this.url = await new Promise<string>((resolve, reject) => {
      let output = "";
      const onOutput = (bytes: Buffer): void => {
        output += bytes.toString();
        const found = /http:\/\/127\.0\.0\.1:\d+/.exec(output);
        if (found) resolve(found[0]);
      };
      child.stdout.on("data", onOutput);
      child.stderr.on("data", onOutput);
      child.once("error", reject);
      child.once("exit", (code) => reject(new Error(`the server ended with ${String(code)}: ${output}`)));
    });
  }

  async #terminate(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const exited = new Promise((resolve) => child.once("exit", resolve));
    child.kill(signal);
    await exited;
  }
}

/** Polls until the result is neither undefined nor false, and returns it. */
export async function until<T>(poll: () => T | undefined | false | Promise<T | undefined | false>): Promise<T> {
  for (;;) {
    const found = await poll();
    if (found !== undefined && found !== false) return found;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
