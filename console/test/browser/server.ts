import { spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const program = process.env["RUNWIRE_PROGRAM"] ?? join(import.meta.dirname, "../../../target/debug/runwire");
const demoAgents = ["demo", "thought-tree", "thought-graph", "failing", "endless"];

/** A server process with a temporary store. */
export class Server {
  readonly url: string;
  readonly #folder: string;
  #child: ChildProcess;

  private constructor(folder: string, { child, url }: ServerProcess) {
    this.#folder = folder;
    this.#child = child;
    this.url = url;
  }

  /** Starts a server with the built-in agents in fast mode. */
  static async start(): Promise<Server> {
    const folder = mkdtempSync(join(tmpdir(), "runwire-console-"));
    const agents = demoAgents.map((name) => `[agents.${name}]\nkind = "demo"\nfast = true\n`);
    writeFileSync(join(folder, "runwire.toml"), agents.join("\n"));
    return new Server(folder, await launch(folder, 0));
  }

  /** Kills the server with SIGKILL. */
  kill(): Promise<void> {
    return terminate(this.#child, "SIGKILL");
  }

  /** Starts the server again on the same port with the same store. */
  async restart(): Promise<void> {
    const { child } = await launch(this.#folder, Number(new URL(this.url).port));
    this.#child = child;
  }

  async close(): Promise<void> {
    await terminate(this.#child, "SIGTERM");
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

interface ServerProcess {
  child: ChildProcess;
  url: string;
}

async function launch(folder: string, port: number): Promise<ServerProcess> {
  const store = `sqlite:${join(folder, "runwire.db")}`;
  const child = spawn(program, ["serve", "--listen", `127.0.0.1:${port}`, "--store", store], {
    cwd: folder,
    // Settings of the developer must not affect the server.
    env: Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("RUNWIRE_"))),
    stdio: ["ignore", "pipe", "pipe"],
  });
  const url = await new Promise<string>((resolve, reject) => {
    let output = "";
    const onOutput = (bytes: Buffer) => {
      output += bytes.toString();
      const found = /http:\/\/127\.0\.0\.1:\d+/.exec(output);
      if (found) resolve(found[0]);
    };
    child.stdout.on("data", onOutput);
    child.stderr.on("data", onOutput);
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`the server ended with ${code}: ${output}`)));
  });
  return { child, url };
}

async function terminate(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once("exit", resolve));
  child.kill(signal);
  await ended;
}
