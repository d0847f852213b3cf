// Shows that the check can fail: every stream in test/broken must, for the
// reason in its expected.txt, and every one in test/good must not.
import { readFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { problemsOfAttaching } from "./attach.mjs";
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
for (const [name, frames, expected, told = 0] of attachCases()) {
  const found = summary(await problemsOfAttaching([{ run: 0, after: 0, told, frames }], replayFile()));
  if (expected === undefined ? found === "" : found.includes(expected)) {
    passed++;
  } else {
    failed++;
    console.log(`attached, ${name}: expected ${JSON.stringify(expected ?? "no problem")}, got ${found || "no problem"}`);
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

function replayFile() {
  return path.join(test, "good/everything-in-one-run/ag-ui.ndjson");
}

/** A replay is what a client receives that attaches before the first record; each other one must be refused. */
function attachCases() {
  const frames = readFileSync(replayFile(), "utf8").trim().split("\n");
  const at = (type) => frames.findIndex((frame) => JSON.parse(frame).type === type);
  const content = at("TEXT_MESSAGE_CONTENT");
  return [
    ["as it is", frames, undefined],
    ["text told twice", frames.toSpliced(content, 0, frames[content]), "replayed"],
    ["no start of what is open", frames.toSpliced(at("TEXT_MESSAGE_START"), 1), "verifyEvents"],
    ["a result left out", frames.toSpliced(at("TOOL_CALL_RESULT"), 1), "replayed"],
    ["a replay onto half a message", frames, "cut off", content + 1],
    ["a state left out", frames.toSpliced(at("STATE_SNAPSHOT"), 1), "state"],
  ];
}
