// Checks what a client that attaches to a run receives: after every record of every vector, the snapshot and the
// tail behind it must leave a client with what a full replay leaves: a fresh one, and one that was cut off there
// and still holds half a message. The Rust tests write the streams.
import { existsSync, readFileSync, readdirSync } from "node:fs";
import path from "node:path";
import { isDeepStrictEqual } from "node:util";
import { ThreadClients } from "./client.mjs";
import { cutIntoRuns, parseLines, verifyWhole } from "./stream.mjs";

/** Finds every <folder>/<source-dialect>/<case>.json. */
export function findAttachFiles(folder) {
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .sort()
    .flatMap((dialect) =>
      readdirSync(path.join(folder, dialect))
        .sort()
        .map((name) => path.join(folder, dialect, name)),
    );
}

/**
 * Reads the streams of one case: of which run, after which record, how many frames of the run were told until
 * then, and the frames that the attached client receives.
 */
export const readAttachFile = (file) => JSON.parse(readFileSync(file, "utf8"));

/** Returns what is wrong with streams, given the file of the full replay. */
export async function problemsOfAttaching(streams, replayFile) {
  const ends = await endsOfRuns(replayFile);
  const isOwn = path.basename(path.dirname(path.dirname(replayFile))) === "ag-ui";
  const problems = [];
  for (const { run, after, told, frames } of streams) {
    for (const heard of new Set([0, told])) {
      const found = await problemsOfStream(frames, ends[run], heard, isOwn);
      const who = heard === 0 ? "attached" : "cut off and attached";
      problems.push(...found.map((what) => `run ${run + 1}, ${who} after record ${after}: ${what}`));
    }
  }
  return problems;
}

/** Replays a whole stream, and notes what the client holds before and after each run. */
async function endsOfRuns(file) {
  const clients = new ThreadClients();
  const ends = [];
  for (const { threadId, responses } of cutIntoRuns(parseLines(readFileSync(file)).lines).runs) {
    const held = clients.messages(threadId);
    const lines = responses.flatMap((response) => response.lines);
    const before = new Set(held.map(({ id }) => id));
    const earlierCalls = new Set(held.flatMap(({ toolCalls = [] }) => toolCalls.map(({ id }) => id)));
    for (const response of responses) await clients.receive(response);
    ends.push({ lines, before, earlierCalls, messages: clients.messages(threadId), state: clients.state(threadId) });
  }
  return ends;
}

async function problemsOfStream(frames, end, heard, isOwn) {
  const { lines, problems: malformed } = parseLines(Buffer.from(frames.map((frame) => `${frame}\n`).join("")));
  if (malformed.length > 0) return malformed;
  const { runs, problems: cutting } = cutIntoRuns(lines);
  const refused = [...verifyWhole(lines), ...cutting];
  if (refused.length > 0) return refused;
  if (runs.length !== 1) return [`${runs.length} runs instead of one`];

  const clients = new ThreadClients();
  // That a response stops in the middle is no fault of ours, and the client keeps what it has.
  for (const { responses } of cutIntoRuns(end.lines.slice(0, heard)).runs) {
    for (const response of responses) await clients.receive(response);
  }
  const complaints = [];
  for (const response of runs[0].responses) complaints.push(...(await clients.receive(response)));
  // As in check.mjs: unknown fields are the producer's own, and the client drops them.
  const isDropped = (complaint) => isOwn && complaint.includes("[enforce] Removed unrecognised material");
  const refusals = complaints.filter((complaint) => !isDropped(complaint));
  if (refusals.length > 0) return refusals;
  return differencesOf(clients.messages(runs[0].threadId), clients.state(runs[0].threadId), end);
}

/** Lists how the client that attached differs from the one that saw everything, in the messages of this run. */
function differencesOf(messages, state, end) {
  const found = [];
  const ofRun = ({ id }) => !end.before.has(id);
  const ours = new Map(messages.filter(ofRun).map((message) => [message.id, shown(message)]));
  const expected = new Map(end.messages.filter(ofRun).map((message) => [message.id, shown(message)]));
  for (const [id, message] of expected) {
    if (!isDeepStrictEqual(ours.get(id), message)) {
      found.push(`message ${id}: replayed ${JSON.stringify(message)}, attached ${JSON.stringify(ours.get(id))}`);
    }
  }
  // The results of earlier runs are told under ids of our own, whatever the producer's were.
  const isEarlier = ({ toolCallId }) => end.earlierCalls.has(toolCallId);
  for (const [id, message] of ours) {
    if (!expected.has(id) && !isEarlier(message)) found.push(`message ${id}: the replay has none`);
  }
  if (new Set(messages.map(({ id }) => id)).size < messages.length) found.push("two messages with one id");
  if (end.state !== undefined && !isDeepStrictEqual(state, end.state)) {
    found.push(`state: replayed ${JSON.stringify(end.state)}, attached ${JSON.stringify(state)}`);
  }
  return found;
}

/** What a person sees of a message. A call without arguments may say so or say nothing. */
function shown({ role, content, toolCalls, toolCallId, activityType, encryptedValue }) {
  const calls = toolCalls?.map((call) => ({
    id: call.id,
    name: call.function.name,
    arguments: parsed(call.function.arguments),
    encryptedValue: call.encryptedValue,
  }));
  return { role, content: content ?? "", calls: calls ?? [], toolCallId, activityType, encryptedValue };
}

function parsed(text) {
  try {
    return JSON.parse(text === "" ? "{}" : text);
  } catch {
    return text;
  }
}
