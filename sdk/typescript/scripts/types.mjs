// Generates src/generated.ts and src/dialects from the JSON Schemas; with `--check`, fails if they are stale.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { dialectTypes } from "./dialect-types.mjs";
import { modelTypes } from "./model-types.mjs";

const PACKAGE = path.join(path.dirname(fileURLToPath(import.meta.url)), "..");
const ROOT = path.join(PACKAGE, "../..");
const DIALECTS = path.join(PACKAGE, "src/dialects");

const files = { "src/generated.ts": modelTypes(ROOT) };
for (const [name, text] of Object.entries(dialectTypes(ROOT))) files[`src/dialects/${name}`] = text;

mkdirSync(DIALECTS, { recursive: true });
const strays = readdirSync(DIALECTS).map((name) => `src/dialects/${name}`).filter((file) => files[file] === undefined);

if (process.argv.includes("--check")) {
  const stale = Object.entries(files).filter(([file, text]) => !existsSync(path.join(PACKAGE, file)) || readFileSync(path.join(PACKAGE, file), "utf8") !== text);
  for (const file of [...stale.map(([file]) => file), ...strays]) console.error(`${file} is not what the schema says: run \`npm run types\` and look at the difference`);
  process.exitCode = stale.length + strays.length > 0 ? 1 : 0;
} else {
  for (const file of strays) rmSync(path.join(PACKAGE, file));
  for (const [file, text] of Object.entries(files)) writeFileSync(path.join(PACKAGE, file), text);
}
