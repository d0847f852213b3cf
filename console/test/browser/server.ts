import { spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const program = process.env["RUNWIRE_PROGRAM"] ?? join(import.meta.dirname, "../../../target/debug/runwire");
const demos = ["demo", "thought-tree", "thought-graph", "failing", "endless"];

/** A server of our own, with a store that is deleted with it. */
export class Server {
  readonly url: string;
  readonly #folder: string;
  #child: ChildProcess;

  private constructor(folder: string, { child, url }: Started) {
    this.#folder = folder;
    this.#child = child;
    this.url = url;
  }

  /** Starts a server with the built-in agents, at a pace for programs. */
  static async start(): Promise<Server> {
    const folder = mkdtempSync(join(tmpdir(), "runwire-console-"));
    const agents = demos.map((name) => `[agents.${name}]\nkind = "demo"\nfast = true\n`);
    writeFileSync(join(folder, "runwire.toml"), agents.join("\n"));
    return new Server(folder, await launch(folder, 0));
  }

  /** Ends it without a word, as a crash would. */
  kill(): Promise<void> {
    return end(this.#child, "SIGKILL");
  }

  /** Starts it again, at the same address and with the same store. */
  async restart(): Promise<void> {
    const { child } = await launch(this.#folder, Number(new URL(this.url).port));
    this.#child = child;
  }

  async close(): Promise<void> {
    await end(this.#child, "SIGTERM");
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

interface Started {
  child: ChildProcess;
  url: string;
}

async function launch(folder: string, port: number): Promise<Started> {
  const store = `sqlite:${join(folder, "runwire.db")}`;
  const child = spawn(program, ["serve", "--listen", `127.0.0.1:${port}`, "--store", store], {
    cwd: folder,
    // What is set for the person who runs the tests is not meant for their server.
    env: Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("RUNWIRE_"))),
    stdio: ["ignore", "pipe", "pipe"],
  });
  const url = await new Promise<string>((resolve, reject) => {
    let said = "";
    const listen = (bytes: Buffer) => {
      said += bytes.toString();
      const found = /http:\/\/127\.0\.0\.1:\d+/.exec(said);
      if (found) resolve(found[0]);
    };
    child.stdout.on("data", listen);
    child.stderr.on("data", listen);
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`the server ended with ${code}: ${said}`)));
  });
  return { child, url };
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once("exit", resolve));
  child.kill(signal);
  await ended;
}
