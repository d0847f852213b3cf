import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../../..");

/** The program that is tested against. */
export const PROGRAM = process.env["RUNWIRE_PROGRAM"] ?? path.join(ROOT, "target/debug/runwire");

/** The folder of the golden vectors. */
export const VECTORS = path.join(ROOT, "vectors");

const AGENTS = ["demo", "thought-tree", "thought-graph", "failing", "endless"];

/** A real server with its own store, which can be killed and started again at the same address. */
export class Server {
  readonly #folder = mkdtempSync(path.join(tmpdir(), "runwire-sdk-"));
  #child: ChildProcess | undefined;
  url = "";

  /** Starts a server at a port of its own; settings are lines of its configuration. */
  static async start(settings = ""): Promise<Server> {
    const server = new Server();
    const agents = AGENTS.map((name) => `[agents.${name}]\nkind = "demo"\nfast = true\n`);
    writeFileSync(path.join(server.#folder, "runwire.toml"), `${settings}\n${agents.join("\n")}`);
    await server.#begin("127.0.0.1:0");
    return server;
  }

  /** Ends the server at once, as a power cut would. */
  async kill(): Promise<void> {
    await this.#end("SIGKILL");
  }

  /** Asks the server to stop. */
  async stop(): Promise<void> {
    await this.#end("SIGTERM");
  }

  /** Starts the server again where it was. */
  async restart(): Promise<void> {
    await this.#begin(new URL(this.url).host);
  }

  /** Ends the server and forgets what it stored. */
  async remove(): Promise<void> {
    await this.#end("SIGKILL");
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #begin(listen: string): Promise<void> {
    const options = ["--listen", listen, "--store", `sqlite:${this.#folder}/runwire.db`, "--config", `${this.#folder}/runwire.toml`];
    const child = spawn(PROGRAM, ["serve", ...options], { stdio: ["ignore", "pipe", "pipe"] });
    this.#child = child;
    this.url = await new Promise<string>((resolve, reject) => {
      let said = "";
      const listenFor = (bytes: Buffer): void => {
        said += bytes.toString();
        const found = /http:\/\/127\.0\.0\.1:\d+/.exec(said);
        if (found) resolve(found[0]);
      };
      child.stdout.on("data", listenFor);
      child.stderr.on("data", listenFor);
      child.once("error", reject);
      child.once("exit", (code) => reject(new Error(`the server ended with ${String(code)}: ${said}`)));
    });
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const exited = new Promise((resolve) => child.once("exit", resolve));
    child.kill(signal);
    await exited;
  }
}

/** Waits until something is so. */
export async function until<T>(look: () => T | undefined | false | Promise<T | undefined | false>): Promise<T> {
  for (;;) {
    const found = await look();
    if (found !== undefined && found !== false) return found;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
