// Checks our AG-UI output with the official client: node check.mjs <vectors-dir> [<attach-dir>]
import { existsSync, readFileSync, readdirSync } from "node:fs";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { findAttachFiles, problemsOfAttaching, readAttachFile } from "./attach.mjs";
import { ThreadClients } from "./client.mjs";
import { differences, viewOfRun } from "./compare.mjs";
import { cutIntoRuns, parseLines, verifyWhole } from "./stream.mjs";

/** Finds every <vectors-dir>/<source-dialect>/<case>/ag-ui.ndjson. */
export function findStreams(vectors) {
  const folders = (parent) =>
    readdirSync(parent, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => path.join(parent, entry.name))
      .sort();
  if (!existsSync(vectors)) return [];
  return folders(vectors)
    .flatMap(folders)
    .map((folder) => path.join(folder, "ag-ui.ndjson"))
    .filter(existsSync);
}

/** Returns what is wrong with one stream; an empty list where nothing is. */
export async function problemsOf(file) {
  const { lines, problems: malformed } = parseLines(readFileSync(file));
  if (malformed.length > 0) return malformed;
  const { runs, problems: cutting } = cutIntoRuns(lines);
  const refused = [...verifyWhole(lines), ...cutting];
  if (refused.length > 0) return refused;

  const clients = new ThreadClients();
  const complaints = [];
  for (const run of runs) complaints.push(...(await receiveRun(run, clients)));
  // Fields that AG-UI does not define are the producer's, and handed on in its own dialect; the client drops them.
  if (path.basename(path.dirname(path.dirname(file))) === "ag-ui") {
    const isDropped = (complaint) => complaint.includes("[enforce] Removed unrecognised material");
    complaints.splice(0, complaints.length, ...complaints.filter((complaint) => !isDropped(complaint)));
  }
  if (complaints.length > 0) return complaints;

  const folds = readFolds(path.join(path.dirname(file), "message.json"));
  if (typeof folds === "string") return [folds];
  if (folds.length !== runs.length) {
    return [`the stream has ${runs.length} runs, message.json ${folds.length}`];
  }
  return runs.flatMap((run, index) => compareRun(run, index, folds[index], runs, clients));
}

/** Lets the client receive a run, and notes which messages appeared in it and what they were at its end. */
async function receiveRun(run, clients) {
  const complaints = [];
  run.messageIds = new Set();
  run.hasSnapshot = false;
  // A snapshot of the producer's own says which messages there are; our fold counts what the run told.
  run.isRetold = false;
  for (const response of run.responses) {
    const idsOf = (messages = []) => messages.map(({ id }) => id);
    // What the request brought along is history, not an answer of this run.
    const before = new Set(idsOf(clients.messages(run.threadId)));
    for (const { event } of response.lines) {
      if (event.type === "RUN_STARTED") idsOf(event.input?.messages).forEach((id) => before.add(id));
      if (event.type === "MESSAGES_SNAPSHOT") {
        run.hasSnapshot = true;
        run.isRetold ||= event.metadata?.runwire === undefined;
      }
    }
    complaints.push(...(await clients.receive(response)));
    const seen = new Set();
    for (const id of idsOf(clients.messages(run.threadId))) {
      if (seen.has(id)) complaints.push(`the client holds two messages with id ${id}`);
      seen.add(id);
      if (!before.has(id)) run.messageIds.add(id);
    }
  }
  run.view = viewOfRun(clients.messages(run.threadId), run.messageIds);
  return complaints;
}

function compareRun(run, index, fold, runs, clients) {
  const name = `run ${index + 1} (${run.runId ?? "no id"})`;
  const ofThread = (other) => other.threadId === run.threadId;
  const takenCallIds = runs.slice(0, index).filter(ofThread).flatMap(({ view }) => view.calls.map(({ id }) => id));
  if (run.isRetold) return [];
  const found = differences(run.view, fold, takenCallIds);

  // A later run that reuses an id silently writes into this run's messages. A
  // snapshot may rewrite them on purpose.
  const isRewritten = runs.slice(index + 1).some((other) => ofThread(other) && other.hasSnapshot);
  if (found.length === 0 && !isRewritten) {
    const atTheEnd = viewOfRun(clients.messages(run.threadId), run.messageIds);
    found.push(...differences(atTheEnd, fold, takenCallIds).map((what) => `after a later run, ${what}`));
  }
  return found.map((what) => `${name}: ${what}`);
}

function readFolds(file) {
  if (!existsSync(file)) return "no message.json beside it";
  try {
    const folds = JSON.parse(readFileSync(file, "utf8"));
    return Array.isArray(folds) ? folds : "message.json is not an array";
  } catch (error) {
    return `message.json is not JSON: ${error.message}`;
  }
}

/** One line whatever the number of problems. */
export function summary(problems) {
  const shown = problems.slice(0, 3).join("; ");
  return problems.length > 3 ? `${shown}; and ${problems.length - 3} more` : shown;
}

/** Turns a leading "line 3:" into "file:3:", which editors can follow. */
function located(file, text) {
  const line = /^line (\d+): /.exec(text);
  return line ? `${file}:${line[1]}: ${text.slice(line[0].length)}` : `${file}: ${text}`;
}

/** Where the Rust tests put what a client that attaches receives. */
function attachFolder() {
  const root = fileURLToPath(new URL("../../", import.meta.url));
  return path.join(path.resolve(root, process.env.CARGO_TARGET_DIR ?? "target"), "tmp", "attach");
}

/** Checks the streams of attached clients; gives the number of cases that fail. */
async function checkAttaching(vectors, folder) {
  const files = findAttachFiles(folder);
  if (files.length === 0) {
    console.log(`no streams of attached clients under ${folder}: \`cargo test -p runwire-model\` writes them`);
    return 1;
  }
  let failed = 0;
  let count = 0;
  for (const file of files) {
    const streams = readAttachFile(file);
    const replay = path.join(vectors, path.relative(folder, file).replace(/\.json$/, ""), "ag-ui.ndjson");
    if (!existsSync(replay)) continue; // of a vector that is gone
    const problems = await problemsOfAttaching(streams, replay);
    count += streams.length;
    if (problems.length === 0) continue;
    failed++;
    console.log(`${file}: ${summary(problems)}`);
  }
  console.log(`${count} streams of attached clients in ${files.length} cases, ${failed} cases failed`);
  return count === 0 ? 1 : failed;
}

async function main([vectors, attached = attachFolder()]) {
  if (vectors === undefined) {
    console.error("usage: node check.mjs <vectors-dir> [<attach-dir>]");
    return 2;
  }
  const files = findStreams(vectors);
  if (files.length === 0) console.log(`no <source-dialect>/<case>/ag-ui.ndjson under ${vectors}`);
  let failed = 0;
  for (const file of files) {
    const problems = await problemsOf(file);
    if (problems.length === 0) continue;
    failed++;
    console.log(located(file, summary(problems)));
  }
  console.log(`${files.length - failed} passed, ${failed} failed`);
  failed += await checkAttaching(vectors, attached);
  return failed > 0 || files.length === 0 ? 1 : 0;
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  process.exitCode = await main(process.argv.slice(2));
}
