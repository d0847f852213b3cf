// Checks the bundle size of each export, and that no bundle contains modules it does not need.
import path from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const HERE = path.dirname(fileURLToPath(import.meta.url));
const SOURCE = path.join(HERE, "../src");

/** Bundles with their limit in bytes (minified, gzipped) and the folders that they must not contain. */
const BUNDLES = [
  { name: "Runwire", code: 'export { Runwire } from "./index.ts";', limit: 5 * 1024, excluded: ["fold/", "react/"] },
  { name: "MessageStreamHandler", code: 'export { MessageStreamHandler } from "./index.ts";', limit: 5 * 1024, excluded: ["stream/", "resources/", "react/", "fold/run-view"] },
  { name: "RunView", code: 'export { RunView } from "./index.ts";', limit: 7 * 1024, excluded: ["stream/", "resources/", "react/", "fold/streaming-engine"] },
  { name: "everything", code: 'export * from "./index.ts";', limit: 14 * 1024, excluded: ["react/"] },
  { name: "everything, with React hooks", code: 'export * from "./index.ts"; export * from "./react/index.ts";', limit: 17 * 1024, excluded: [] },
];

let failed = false;
for (const { name, code, limit, excluded } of BUNDLES) {
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
  const included = Object.entries(output.inputs).flatMap(([file, { bytesInOutput }]) => (bytesInOutput > 0 ? [file] : []));
  const unexpected = included.filter((file) => excluded.some((folder) => file.startsWith(folder)));
  console.log(`${name}: ${size} bytes of at most ${limit}`);
  if (size > limit) console.error(`  too large: ${size - limit} bytes over`);
  if (unexpected.length > 0) console.error(`  contains ${unexpected.join(", ")}`);
  failed ||= size > limit || unexpected.length > 0;
}
process.exitCode = failed ? 1 : 0;
