// Plays every requirement of the five documents: node check.mjs <path of the runwire program> [--only NAME]
//
// `--only` takes a document, a requirement (L-2.3) or a test. `--write` writes docs/conformance.md instead.
import { spawn } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { createInterface } from "node:readline";
import { startServer, withPatience } from "../server.mjs";
import { configuration, startBackends } from "./backends.mjs";
import { CONFORMANCE, DOCUMENTS, FOLDER, conformancePage, mistakesOf, readChecklist } from "./checklist.mjs";
import { Server } from "./client.mjs";

/** How many tests are under way at once: they wait for the server more than they work. */
const AT_ONCE = 8;

const isWriting = process.argv.includes("--write");
const only = process.argv.includes("--only") ? process.argv[process.argv.indexOf("--only") + 1] : undefined;
const program = process.argv[2];

const checklists = DOCUMENTS.map(readChecklist);
if (isWriting) {
  writeFileSync(CONFORMANCE, conformancePage(checklists));
} else if (program === undefined) {
  console.error("usage: node check.mjs <path of the runwire program> [--only DOCUMENT | REQUIREMENT | TEST]");
  process.exit(2);
} else {
  process.exitCode = (await check()) ? 0 : 1;
}

async function check() {
  const backends = await startBackends();
  try {
    const started = await startServer(program, configuration(backends.address));
    try {
      const server = new Server({ address: started.address, program: path.resolve(program), backends: backends.address });
      return report(await Promise.all(checklists.map((checklist) => play(checklist, server))));
    } finally {
      await started.stop();
    }
  } finally {
    await backends.stop();
  }
}

/** Runs the tests of one document, and gives the outcome of each by its name: `undefined`, or what went wrong. */
async function play(checklist, server) {
  const { document, requirements } = checklist;
  const { tests } = await import(`./tests/${document.name}.mjs`);
  const python = path.join(FOLDER, "tests", `${document.name}.py`);
  const pythonNames = existsSync(python) ? namesIn(python) : [];
  const isWanted = (name) => only === undefined || only === document.name || only === name || requirements.some(({ id, test }) => id === only && test === name);
  const outcomes = new Map();
  const inPython = pythonNames.filter(isWanted);
  const playingPython = inPython.length > 0 ? playPython(python, inPython, server, outcomes) : undefined;
  await inTurn(Object.keys(tests).filter(isWanted), async (name) => {
    try {
      await withPatience(tests[name](server), name);
      outcomes.set(name, undefined);
    } catch (error) {
      outcomes.set(name, told(error));
    }
  });
  await playingPython;
  const names = [...Object.keys(tests), ...pythonNames];
  return { checklist, outcomes, mistakes: only === undefined ? mistakesOf(checklist, names) : [] };
}

async function inTurn(names, doing) {
  const waiting = [...names];
  const worker = async () => {
    for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) await doing(name);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}

/** Finds the tests of a Python file: its functions of one argument called `server`. */
function namesIn(file) {
  return [...readFileSync(file, "utf8").matchAll(/^def ([a-z]\w*)\(server\):/gm)].map(([, name]) => name);
}

/** Runs tests in Python, which print a line of JSON each. */
async function playPython(file, names, server, outcomes) {
  const child = spawn("python3", ["-B", path.join(FOLDER, "tests/play.py"), file, server.address, ...names], { stdio: ["ignore", "pipe", "inherit"] });
  const failed = new Promise((resolve) => child.once("error", resolve));
  const lines = (async () => {
    for await (const line of createInterface({ input: child.stdout })) {
      const { name, problem } = JSON.parse(line);
      outcomes.set(name, problem ?? undefined);
    }
  })();
  const error = await Promise.race([failed, lines]);
  for (const name of names) if (!outcomes.has(name)) outcomes.set(name, `it did not run: ${error ?? "Python ended before"}`);
}

/** Tells an error: of an assertion what was expected and what came, of anything else where it happened. */
function told(error) {
  if (error?.code !== "ERR_ASSERTION") return error?.stack ?? String(error);
  const place = error.stack.split("\n").find((line) => line.includes("/tests/"))?.trim() ?? "";
  // Node adds its own comparison below the message.
  const message = error.generatedMessage ? "" : `${error.message.split(/\n\+ actual|\n\n.* !== /)[0]}\n`;
  const isCompared = ["deepStrictEqual", "strictEqual"].includes(error.operator);
  const compared = isCompared ? `expected: ${short(error.expected)}\ncame:     ${short(error.actual)}\n` : "";
  return `${message}${compared}${place}`;
}

function short(value) {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 1500 ? `${text.slice(0, 1500)}…` : text;
}

/** Prints a line for each document, what failed, and the sum. */
function report(played) {
  let passed = 0;
  let failed = 0;
  for (const { checklist, outcomes, mistakes } of played) {
    const { document, requirements } = checklist;
    const broken = requirements.filter(({ test }) => outcomes.get(test) !== undefined);
    const kept = requirements.filter(({ test }) => outcomes.has(test) && outcomes.get(test) === undefined);
    const elsewhere = requirements.filter(({ elsewhere }) => elsewhere).length;
    const later = requirements.filter(({ isLater }) => isLater).length;
    console.log(`${document.name}: ${kept.length} of ${requirements.length} requirements hold, ${broken.length} do not, ${elsewhere} are tested elsewhere, ${later} not yet`);
    for (const [name, problem] of outcomes) {
      if (problem === undefined) continue;
      const ids = requirements.filter(({ test }) => test === name).map(({ id }) => id);
      console.log(`  ${ids.join(", ") || "(no requirement)"} ${name}\n    ${problem.replaceAll("\n", "\n    ")}`);
    }
    for (const mistake of mistakes) console.log(`  ${mistake}`);
    passed += [...outcomes.values()].filter((problem) => problem === undefined).length;
    failed += outcomes.size - [...outcomes.values()].filter((problem) => problem === undefined).length + mistakes.length;
  }
  if (only === undefined && (!existsSync(CONFORMANCE) || readFileSync(CONFORMANCE, "utf8") !== conformancePage(checklists))) {
    console.log("docs/conformance.md is stale: run `npm run write` in oracles/documents, and commit what it writes");
    failed++;
  }
  if (passed + failed === 0) {
    console.log(`nothing is called ${only}`);
    failed++;
  }
  console.log(`${passed} passed, ${failed} failed`);
  return failed === 0;
}
