// Bundles what a page would load, and fails where it is larger than promised or brings along what nobody asked for.
import path from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const HERE = path.dirname(fileURLToPath(import.meta.url));
const SOURCE = path.join(HERE, "../src");

/** What is imported, how many bytes it may have (minified, gzipped), and which folders it must not bring along. */
const BUNDLES = [
  { name: "Runwire", code: 'export { Runwire } from "./index.ts";', most: 5 * 1024, without: ["fold/", "react/"] },
  { name: "MessageStreamHandler", code: 'export { MessageStreamHandler } from "./index.ts";', most: 5 * 1024, without: ["stream/", "resources/", "react/", "fold/run-view"] },
  { name: "RunView", code: 'export { RunView } from "./index.ts";', most: 7 * 1024, without: ["stream/", "resources/", "react/", "fold/streaming-engine"] },
  { name: "everything", code: 'export * from "./index.ts";', most: 14 * 1024, without: ["react/"] },
  { name: "everything, with React hooks", code: 'export * from "./index.ts"; export * from "./react/index.ts";', most: 17 * 1024, without: [] },
];

let failed = false;
for (const { name, code, most, without } of BUNDLES) {
  const { outputFiles, metafile } = await build({
    stdin: { contents: code, resolveDir: SOURCE, loader: "ts" },
    bundle: true,
    minify: true,
    format: "esm",
    target: "es2022",
    external: ["react"],
    write: false,
    metafile: true,
    absWorkingDir: SOURCE,
  });
  const size = gzipSync(outputFiles[0].contents, { level: 9 }).length;
  const [output] = Object.values(metafile.outputs);
  const used = Object.entries(output.inputs).flatMap(([file, { bytesInOutput }]) => (bytesInOutput > 0 ? [file] : []));
  const strays = used.filter((file) => without.some((folder) => file.startsWith(folder)));
  console.log(`${name}: ${size} bytes of at most ${most}`);
  if (size > most) console.error(`  too large: ${size - most} bytes over`);
  if (strays.length > 0) console.error(`  brings along ${strays.join(", ")}`);
  failed ||= size > most || strays.length > 0;
}
process.exitCode = failed ? 1 : 0;
