// Starts the back ends of the documents, and configures the server to use them as its agents.
import { spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { createInterface } from "node:readline";
import { FOLDER } from "./checklist.mjs";

const BACKENDS = path.join(FOLDER, "backends");

/** Starts the back ends that speak HTTP; `stop` ends them. */
export async function startBackends() {
  const child = spawn("python3", ["-B", path.join(BACKENDS, "serve.py")], { stdio: ["pipe", "pipe", "inherit"] });
  const exited = once(child, "exit");
  const said = once(createInterface({ input: child.stdout }), "line").then(([line]) => line);
  const address = await Promise.race([said, exited.then(([code]) => Promise.reject(new Error(`the back ends ended with ${code}`)))]);
  return {
    address,
    // They end with their standard input.
    stop: () => (child.stdin.end(), exited),
  };
}

/** Writes the server's configuration: an agent for each document; Agio's is meant where none is named. */
export function configuration(address) {
  const http = (name, dialect, url, more = "") => `[agents.${name}]\nkind = "http"\ndialect = "${dialect}"\nurl = "${address}${url}"\n${more}`;
  return `default_agent = "agio"
# Clients see a sign of life without waiting for long.
keep_alive_seconds = 1

${http("agio", "agio", "/agent/stream")}
${http("agio-query", "agio", "/agent/stream?query={message}")}
${http("streaming-engine", "streaming-engine", "/api/chat")}
${http("easyflow", "easyflow-chat", "/api/v1/bot/chat", `answer_url = "${address}/api/v1/bot/form"\n`)}
${http("social-app", "social-app", "/social-app")}
[agents.loom]
kind = "exec"
command = ["python3", ${JSON.stringify(path.join(BACKENDS, "loom.py"))}]
dialect = "loom"

[agents.endless]
kind = "demo"
fast = true

[agents.demo]
kind = "demo"
fast = true
`;
}
