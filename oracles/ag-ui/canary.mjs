// Shows that the check can fail: every stream in test/broken must, for the
// reason in its expected.txt, and every one in test/good must not.
import { readFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { findStreams, problemsOf, summary } from "./check.mjs";

const test = fileURLToPath(new URL("./test", import.meta.url));
let passed = 0;
let failed = 0;
for (const file of findStreams(test)) {
  const folder = path.dirname(file);
  const isGood = path.basename(path.dirname(folder)) === "good";
  const problems = await problemsOf(file);
  const complaint = isGood ? unwanted(problems) : missing(problems, folder);
  if (complaint === undefined) {
    passed++;
  } else {
    failed++;
    console.log(`${path.relative(test, folder)}: ${complaint}`);
  }
}
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed > 0 || passed === 0 ? 1 : 0;

function unwanted(problems) {
  return problems.length === 0 ? undefined : summary(problems);
}

function missing(problems, folder) {
  const expected = readFileSync(path.join(folder, "expected.txt"), "utf8").trim();
  if (problems.some((problem) => problem.includes(expected))) return undefined;
  return `expected ${JSON.stringify(expected)}, got ${problems.length === 0 ? "no problem" : summary(problems)}`;
}
