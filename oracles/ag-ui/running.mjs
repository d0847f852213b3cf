// Lets the official client start runs of a real server: node running.mjs <path of the runwire program>
//
// Run, tool calls, a question, a reload in the middle, the answer, cancel; two questions, answered together and one
// after the other. What the client holds in the end must be what the run said, whatever the way it came by it.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { fileURLToPath } from "node:url";
import { HttpAgent } from "@ag-ui/client";
import { DEMOS, programToCheck, quietly, runChecks, until } from "../server.mjs";

/** The official client, but for how it asks: attaching is a GET. */
class AttachingAgent extends HttpAgent {
  requestInit(input) {
    const { headers, signal } = super.requestInit(input);
    return { method: "GET", headers: { ...headers, Accept: "text/event-stream" }, signal };
  }
}

const FILLED_IN = { name: "Ann", email: "ann@example.com", travellers: 2 };
const PAID = [{ interruptId: "pay", status: "resolved", payload: { approved: true } }];
const NAMED = [{ interruptId: "who", status: "resolved", payload: { name: "Ines" } }];
const question = (content) => ({ id: randomUUID(), role: "user", content });
const answer = (interruptId, payload) => [{ interruptId, status: "resolved", payload }];
const saidBy = (agent, role) => agent.messages.filter((message) => message.role === role);
const textOf = (agent) => saidBy(agent, "assistant").map(({ content }) => content ?? "").join("");
const asked = (agent) => agent.pendingInterrupts.map(({ id }) => id);
const callsOf = (agent) => agent.messages.flatMap((message) => message.toolCalls ?? []);

function starting(address, threadId, content, name = "demo") {
  const initialMessages = content === undefined ? [] : [question(content)];
  return new HttpAgent({ url: `${address}/ag-ui/${name}`, threadId, initialMessages });
}

async function attached(address, threadId, name = "demo") {
  const agent = new AttachingAgent({ url: `${address}/ag-ui/${name}/${threadId}`, threadId });
  await agent.runAgent();
  return agent;
}

/** Runs, and lists what the client was told of starts and ends: `start`, the questions of an interrupt, `end`. */
async function toldTo(agent, parameters) {
  const told = [];
  await agent.runAgent(parameters, {
    onRunStartedEvent: () => { told.push("start"); },
    onRunFinishedEvent: ({ event }) => { told.push(event.outcome?.interrupts?.map(({ id }) => id) ?? "end"); },
  });
  return told;
}

/** What a person sees of a conversation, whoever named its messages. */
function seen(agent) {
  const calls = (message) => message.toolCalls?.map(({ id, function: called }) => [id, called.name, JSON.parse(called.arguments)]);
  return agent.messages.map((message) => [message.role, message.content ?? "", calls(message), message.toolCallId]);
}

function assertNoMessageTwice(agent) {
  const ids = agent.messages.map(({ id }) => id);
  assert.equal(new Set(ids).size, ids.length, "no message is there twice");
}

async function statusOf(address, run) {
  return (await (await fetch(`${address}/v1/runs/${run}`)).json()).status;
}

async function post(address, path, body) {
  const headers = { "content-type": "application/json" };
  return fetch(`${address}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
}

/** A whole conversation: tools, a form, a reload while it waits, an approval, the end. */
async function askReloadAndAnswer(address) {
  const agent = starting(address, "t-talk", "weather in Paris?");
  const run = randomUUID();
  await agent.runAgent({ runId: run });
  assert.deepEqual(asked(agent), ["trip"]);
  assert.equal(await statusOf(address, run), "suspended");
  assert.ok(callsOf(agent).length >= 2 && saidBy(agent, "tool").length >= 2, "tools were called and have answered");
  assert.equal(saidBy(agent, "user").length, 1, "what was asked is there once");

  const busy = await post(address, "/ag-ui/demo", { threadId: "t-talk", runId: "other", messages: [question("and?")] });
  assert.deepEqual([busy.status, (await busy.json()).code], [409, "thread_busy"]);
  const wrong = { threadId: "t-talk", runId: "wrong", messages: [], resume: answer("trip", { name: "Ann" }) };
  const refused = await post(address, "/ag-ui/demo", wrong);
  assert.equal(refused.status, 422);
  assert.equal((await refused.json()).errors[0].pointer, "/email");

  const heldBack = textOf(agent);
  let shown;
  await agent.runAgent({ runId: "answer-1", resume: answer("trip", FILLED_IN) }, { onRunStartedEvent: ({ event }) => { shown = event.runId; } });
  assert.equal(shown, "answer-1", "the run on the wire is the request's");
  assert.deepEqual(asked(agent), ["booking"]);
  assert.ok(textOf(agent).startsWith(heldBack));

  const reloaded = await attached(address, "t-talk");
  assert.deepEqual(asked(reloaded), ["booking"]);
  assert.deepEqual(seen(reloaded), seen(agent), "a reload shows what was there");
  assert.deepEqual(reloaded.state, agent.state);

  const after = starting(address, "t-talk");
  after.messages = reloaded.messages;
  after.state = reloaded.state;
  await after.runAgent({ runId: "answer-2", resume: answer("booking", { approved: true }) });
  assert.deepEqual(asked(after), []);
  assert.equal(await statusOf(address, run), "completed");
  const over = await attached(address, "t-talk");
  assert.deepEqual(seen(after), seen(over));
  assertNoMessageTwice(after);

  after.addMessage(question("again, in Rome"));
  await after.runAgent();
  assert.deepEqual(asked(after), ["trip"], "the next run is a run of its own");
  assert.equal(saidBy(after, "user").length, 2);
  assertNoMessageTwice(after);
}

/** The client withdraws the form; the run goes on and ends. */
async function withdraw(address) {
  const agent = starting(address, "t-withdraw", "天气怎么样");
  await agent.runAgent();
  await agent.runAgent({ resume: [{ interruptId: "trip", status: "cancelled" }] });
  assert.deepEqual(asked(agent), []);
  assertNoMessageTwice(agent);
}

/** Two questions in one frame are one list, and the answers to both lead straight to the end. */
async function answerTogether(address) {
  const agent = starting(address, "t-together", "two seats", "together");
  const run = randomUUID();
  assert.deepEqual(await toldTo(agent, { runId: run }), ["start", ["pay", "who"]]);
  assert.deepEqual(asked(agent), ["pay", "who"]);
  await quietly(() => assert.rejects(agent.runAgent({ resume: PAID }), /who/, "the client itself insists on both"));
  assert.deepEqual(await toldTo(agent, { resume: [...NAMED, ...PAID] }), ["start", "end"]);
  assert.equal(textOf(agent), "Two seats for Ines.");
  assert.equal(await statusOf(address, run), "completed");
  assertNoMessageTwice(agent);
}

/** One of two is answered elsewhere: a reload asks for the other alone, and whoever still knows both may say both. */
async function answerOneElsewhere(address) {
  for (const again of [NAMED, [...PAID, ...NAMED]]) {
    const thread = randomUUID();
    const agent = starting(address, thread, "two seats", "together");
    const run = randomUUID();
    await agent.runAgent({ runId: run });
    assert.equal((await post(address, `/v1/runs/${run}/interactions/pay`, { decision: "approved" })).status, 200);
    const reloaded = await attached(address, thread, "together");
    assert.deepEqual(asked(reloaded), ["who"]);
    if (again === NAMED) agent.pendingInterrupts = reloaded.pendingInterrupts;
    assert.deepEqual(await toldTo(agent, { resume: again }), ["start", "end"]);
    assert.equal(textOf(agent), "Two seats for Ines.");
    assertNoMessageTwice(agent);
  }
}

/** Two questions in two frames: the response ends at the first, and the next one asks for what is left. */
async function answerOneAfterTheOther(address) {
  const agent = starting(address, "t-apart", "two seats", "apart");
  const run = randomUUID();
  assert.deepEqual(await toldTo(agent, { runId: run }), ["start", ["pay"]]);
  await until(async () => (await (await fetch(`${address}/v1/runs/${run}`)).json()).interactions.length === 2);
  assert.deepEqual(asked(await attached(address, "t-apart", "apart")), ["pay", "who"]);
  assert.deepEqual(await toldTo(agent, { resume: PAID }), ["start", ["who"]]);
  assert.deepEqual(asked(agent), ["who"]);
  assert.deepEqual(await toldTo(agent, { resume: NAMED }), ["start", "end"]);
  assert.equal(textOf(agent), "Two seats for Ines.");
  assertNoMessageTwice(agent);
}

/** The connection is lost in the middle of a run: the run goes on, and the same request again attaches to it. */
async function loseAndRepeat(address) {
  const agent = starting(address, "t-lost", "go", "endless");
  const run = randomUUID();
  const first = agent.runAgent({ runId: run });
  await until(() => textOf(agent).length > 20);
  agent.abortRun();
  await first.catch(() => {});
  const held = textOf(agent);
  assert.equal(await statusOf(address, run), "running", "leaving is not stopping");

  const again = agent.runAgent({ runId: run });
  await until(() => textOf(agent).length > held.length + 20);
  const cancelled = await post(address, `/v1/runs/${run}/cancel`, {});
  assert.equal(cancelled.status, 200);
  await again;
  assert.equal(await until(async () => (await statusOf(address, run)) === "cancelled"), true);
  const told = await (await fetch(`${address}/v1/runs/${run}/message`)).json();
  assert.equal(textOf(agent).replaceAll(/\s/g, ""), told.mainContent.replaceAll(/\s/g, ""), "no text twice, none lost");
  assert.equal(saidBy(agent, "user").length, 1);
  assertNoMessageTwice(agent);
}

/** A run that fails is told as the client expects it. */
async function fail(address) {
  const agent = starting(address, "t-fail", "hi", "failing");
  let error;
  await agent.runAgent({}, { onRunErrorEvent: ({ event }) => { error = event; } }).catch(() => {});
  assert.ok(error?.message, "the error has a message");
}

/** An agent that is not there is a refusal, which the client hands on. */
async function unknownAgent(address) {
  const agent = starting(address, "t-none", "hi", "nobody");
  await quietly(() => assert.rejects(agent.runAgent(), /404/));
}

const asking = (way) => {
  const command = [process.execPath, fileURLToPath(new URL("asking.mjs", import.meta.url)), way];
  return `\n[agents.${way}]\nkind = "exec"\ndialect = "ag-ui"\ncommand = ${JSON.stringify(command)}\n`;
};
const questions = { answerTogether, answerOneElsewhere, answerOneAfterTheOther };
const checks = { askReloadAndAnswer, withdraw, ...questions, loseAndRepeat, fail, unknownAgent };
const failed = await runChecks(programToCheck(), DEMOS + asking("together") + asking("apart"), checks);
console.log(`the official client ran ${Object.keys(checks).length} conversations, ${failed} failed`);
process.exitCode = failed > 0 ? 1 : 0;
