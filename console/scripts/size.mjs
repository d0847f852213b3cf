// Fails when the built console is larger than it may be: all scripts and styles together, gzipped.
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const limit = 300_000;
const folder = process.argv[2] ?? fileURLToPath(new URL("../dist/assets", import.meta.url));

let total = 0;
for (const name of readdirSync(folder).sort()) {
  if (!/\.(js|css)$/.test(name)) continue;
  const size = gzipSync(readFileSync(`${folder}/${name}`), { level: 9 }).length;
  total += size;
  process.stdout.write(`${String(size).padStart(8)}  ${name}\n`);
}
process.stdout.write(`${String(total).padStart(8)}  gzipped in all, of ${limit}\n`);
if (total > limit) {
  process.stderr.write("the console is too large\n");
  process.exit(1);
}
