// Lets the official client attach to runs of a real server: node served.mjs <path of the runwire program>
//
// A client attaches twice to one run while it is written, and to runs that wait or are over. What it holds in the end
// must be what was written: no text twice, arguments whole, results there.
import assert from "node:assert/strict";
import { HttpAgent } from "@ag-ui/client";
import { DEMOS, programToCheck, runChecks } from "../server.mjs";

/** The official client, but for how it asks: attaching is a GET. */
class AttachingAgent extends HttpAgent {
  requestInit(input) {
    const { headers, signal } = super.requestInit(input);
    return { method: "GET", headers: { ...headers, Accept: "text/event-stream" }, signal };
  }
}

async function write(address, run, thread, frames) {
  const body = frames.map((frame) => JSON.stringify(frame)).join("\n");
  const headers = { "content-type": "application/x-ndjson" };
  const url = `${address}/v1/runs/${run}/events?dialect=runwire&thread=${thread}`;
  const answer = await fetch(url, { method: "POST", headers, body });
  assert.equal(answer.status, 200, await answer.text());
}

function agentOf(address, thread) {
  return new AttachingAgent({ url: `${address}/ag-ui/demo/${thread}`, threadId: thread });
}

/** Attaches, and gives what is needed to wait for something and to leave. */
function attach(agent, parameters = {}) {
  const waiting = [];
  let seen = 0;
  const look = () => waiting.splice(0).forEach((wake) => wake());
  const done = agent.runAgent(parameters, {
    onEvent: () => {
      seen++;
      setTimeout(look, 0);
    },
  });
  const until = async (isSo) => {
    while (!isSo()) await new Promise((resolve) => waiting.push(resolve));
  };
  return { done, until, seen: () => seen };
}

const piece = (content) => ({ type: "text.delta", message_id: "m1", content });
const textOf = (agent) => agent.messages.filter(({ role }) => role === "assistant").map(({ content }) => content ?? "").join("");
const callsOf = (agent) => agent.messages.flatMap((message) => message.toolCalls ?? []);
const resultsOf = (agent) => agent.messages.filter(({ role }) => role === "tool");

const HALF = [
  { type: "run.started", message: "hi" },
  piece("Hel"),
  { type: "tool.args_started", call_id: "c1", name: "search" },
  { type: "tool.args_delta", call_id: "c1", delta: '{"q":"wea' },
];
const REST = [
  { type: "tool.args_delta", call_id: "c1", delta: '"}' },
  { type: "tool.called", call_id: "c1", name: "search", arguments: { q: "weather" } },
  { type: "tool.finished", call_id: "c1", status: "success", result: "sunny" },
];

function assertWhole(agent) {
  assert.equal(textOf(agent), "Hello world");
  assert.deepEqual(callsOf(agent).map(({ id, function: { name, arguments: text } }) => [id, name, JSON.parse(text)]), [
    ["c1", "search", { q: "weather" }],
  ]);
  assert.deepEqual(resultsOf(agent).map(({ toolCallId, content }) => [toolCallId, content]), [["c1", "sunny"]]);
  const ids = agent.messages.map(({ id }) => id);
  assert.equal(new Set(ids).size, ids.length, "no message is there twice");
}

/** The same agent object attaches in the middle of a run, leaves, and attaches again. */
async function attachTwice(address) {
  await write(address, "twice", "t-twice", HALF);
  const agent = agentOf(address, "t-twice");
  const first = attach(agent);
  await first.until(() => textOf(agent) === "Hel" && callsOf(agent)[0]?.function.arguments === '{"q":"wea');
  await write(address, "twice", "t-twice", [piece("lo"), { type: "tool.args_delta", call_id: "c1", delta: "ther" }]);
  await first.until(() => textOf(agent) === "Hello" && callsOf(agent)[0]?.function.arguments === '{"q":"weather');
  agent.abortRun();
  await first.done.catch(() => {});

  const second = attach(agent);
  await second.until(() => second.seen() > 1 && textOf(agent) === "Hello");
  await write(address, "twice", "t-twice", REST.slice(0, 1));
  await second.until(() => callsOf(agent)[0]?.function.arguments === '{"q":"weather"}');
  await write(address, "twice", "t-twice", [...REST.slice(1), piece(" world"), { type: "run.completed" }]);
  await second.done;
  assertWhole(agent);
}

/** A run that waits for a person ends the response, and goes on in the next one. */
async function attachToWaiting(address) {
  const question = { type: "interaction.requested", interaction_id: "i1", kind: "approval", title: "Go on?" };
  await write(address, "waits", "t-waits", [...HALF, piece("lo"), { type: "tool.args_delta", call_id: "c1", delta: "ther" }, ...REST, question]);
  const agent = agentOf(address, "t-waits");
  await attach(agent).done;
  assert.equal(textOf(agent), "Hello");
  // The client runs on only with an answer to what it was asked; attaching does not carry it anywhere.
  const answered = { resume: [{ interruptId: "i1", status: "resolved", payload: { approved: true } }] };
  await attach(agent, answered).done;
  assert.equal(textOf(agent), "Hello", "attaching again changes nothing");
  await write(address, "waits", "t-waits", [{ type: "text.delta", message_id: "m2", content: " world" }, { type: "run.completed" }]);
  await attach(agent, answered).done;
  assertWhole(agent);
}

/** A run that is over is told whole, to a fresh client and to one that has it already. */
async function attachToClosed(address) {
  const rest = [piece("lo"), { type: "tool.args_delta", call_id: "c1", delta: "ther" }, ...REST, piece(" world")];
  await write(address, "over", "t-over", [...HALF, ...rest, { type: "run.completed" }]);
  const agent = agentOf(address, "t-over");
  for (let times = 0; times < 2; times++) {
    await attach(agent).done;
    assertWhole(agent);
  }
}

const checks = { attachTwice, attachToWaiting, attachToClosed };
const failed = await runChecks(programToCheck(), DEMOS, checks);
console.log(`${Object.keys(checks).length} clients attached to a server, ${failed} failed`);
process.exitCode = failed > 0 ? 1 : 0;
