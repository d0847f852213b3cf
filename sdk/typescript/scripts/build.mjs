// Compiles src/ to dist/: ES modules and declarations.
import { execFileSync } from "node:child_process";
import { rmSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = path.join(path.dirname(fileURLToPath(import.meta.url)), "..");
rmSync(path.join(ROOT, "dist"), { recursive: true, force: true });
const compiler = path.join(ROOT, "node_modules/.bin/tsc");
execFileSync(compiler, ["-p", "tsconfig.build.json"], { cwd: ROOT, stdio: "inherit", shell: process.platform === "win32" });
