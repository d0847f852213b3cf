// A run of each document: what one agent does, told in the words of each. Tests read each of them in every dialect.
import { shared } from "./client.mjs";

const TEXT = ["Sunny, ", "21°C."];
const ARGUMENTS = { city: "Beijing" };
const FACTS = { temperature: 21, sky: "晴" };

const loom = [
  { session_id: "corpus", event_id: 1, type: "run_start", message: "weather?", agent: "react" },
  { session_id: "corpus", node_id: "run-act-1", event_id: 2, type: "node_enter", id: "act" },
  { type: "thought_chunk", content: "let me see", id: "act" },
  { type: "tool_call", call_id: "c1", name: "get_weather", arguments: ARGUMENTS },
  { type: "tool_start", call_id: "c1", name: "get_weather" },
  { type: "tool_output", call_id: "c1", name: "get_weather", content: "asking…" },
  { type: "tool_end", call_id: "c1", name: "get_weather", result: "晴，21°C", is_error: false },
  { type: "tool_call", call_id: "c2", name: "get_tide", arguments: {} },
  { type: "tool_end", call_id: "c2", name: "get_tide", result: "no sea here", is_error: true },
  { type: "values", state: { city: "Beijing" } },
  ...TEXT.map((content) => ({ type: "message_chunk", content, id: "act" })),
  { type: "usage", prompt_tokens: 100, completion_tokens: 20, total_tokens: 120 },
  { type: "node_exit", id: "act", result: "Ok" },
  { reply: TEXT.join("") },
];

const engine = (type, data, metadata = {}) => ({ type, data, metadata: { request_id: "req_corpus", timestamp: 1763300000000, sequence: 0, ...metadata } });
const streamingEngine = [
  engine("session_start", { session_id: "corpus", request_id: "req_corpus" }),
  engine("thinking", { content: "let me see", stage: "reasoning" }),
  engine("tool_call_start", { tool_id: "c1", tool_name: "get_weather", description: "天气", arguments: ARGUMENTS }),
  engine("tool_call_progress", { tool_id: "c1", progress: 50, message: "half" }),
  engine("tool_call_end", { tool_id: "c1", status: "success", result: FACTS }, { duration_ms: 150 }),
  engine("tool_call_start", { tool_id: "c2", tool_name: "get_tide", description: "潮", arguments: {} }),
  engine("tool_call_end", { tool_id: "c2", status: "failed", error: { message: "no sea here", code: "NO_SEA" } }),
  engine("data", { data_type: "dataframe", data: { name: "t", columns: ["a"], rows: [[1]] }, metadata: { description: "d" } }),
  ...TEXT.map((content) => engine("content", { content, format: "markdown", is_complete: false })),
  engine("session_end", { status: "completed", summary: { total_tokens: 120, duration_ms: 3000, tool_calls: 2 } }),
];

const event = (type, data, metadata = {}) => ({ type, run_id: "corpus", timestamp: "2025-11-20T18:00:00.000Z", data, metadata });
const agio = [
  event("run_started", { query: "weather?" }),
  event("step_started", { step: 1 }),
  event("tool_call_started", { tool_name: "get_weather", tool_call_id: "c1", arguments: ARGUMENTS, step: 1 }),
  event("tool_call_completed", { tool_name: "get_weather", tool_call_id: "c1", result: "晴，21°C", duration: 0.123, step: 1 }),
  event("tool_call_started", { tool_name: "get_tide", tool_call_id: "c2", arguments: {}, step: 1 }),
  event("tool_call_failed", { tool_name: "get_tide", tool_call_id: "c2", error: "no sea here", step: 1 }),
  ...TEXT.map((content) => event("text_delta", { content, step: 1 })),
  event("usage_update", { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120, step: 1 }, { model_name: "secret-model" }),
  event("metrics_snapshot", { total_tokens: 120, current_step: 1, tool_calls_count: 2, model_name: "secret-model" }),
  event("warning", { message: "slow" }),
  event("step_completed", { step: 1 }),
  event("run_completed", { response: TEXT.join(""), metrics: { duration: 5.14, steps_count: 1, tool_calls_count: 2, total_tokens: 120, response_latency: 1071 } }),
];

const social = (type, fields = {}) => ({ type, threadId: "corpus", runId: "corpus", ...fields });
const call = (id, name) => ({ messageId: "m0", toolCallId: id, toolCallName: name, stage: "worker" });
const socialApp = [
  social("RUN_STARTED"),
  social("STEP_STARTED", { stepName: "worker" }),
  ...[["c1", "get_weather", ARGUMENTS, "success", "晴，21°C", null], ["c2", "get_tide", {}, "failure", "", "no sea here"]].flatMap(([id, name, args, status, result, error]) => [
    social("TOOL_CALL_START", call(id, name)),
    social("TOOL_CALL_ARGS", { ...call(id, name), args }),
    social("TOOL_CALL_END", call(id, name)),
    social("TOOL_CALL_RESULT", { messageId: `${id}-result`, role: "tool", stage: "worker", tool_name: name, tool_call_id: id, tool_call_args: args, status, result, error }),
  ]),
  social("TEXT_MESSAGE_END", { messageId: "m1", role: "assistant", stage: "worker", status: "success", answer: TEXT.join(""), key_points: ["warm"], result_type: "execution_report", suggested_actions: [], error: null, ui_schema: { type: "card" } }),
  social("STEP_FINISHED", { stepName: "worker" }),
  social("RUN_FINISHED"),
];

const flow = (domain, type, payload, more = {}) => ({ protocol: "easyflow-chat", version: "1.1", domain, type, conversation_id: "corpus", payload, ...more });
const easyflow = [
  flow("system", "status", { state: "running" }),
  flow("workflow", "status", { node_id: "node_1", state: "start" }),
  flow("llm", "thinking", { delta: "let me see" }, { message_id: "m1", index: 0 }),
  flow("tool", "tool_call", { tool_call_id: "c1", name: "get_weather", arguments: ARGUMENTS }, { message_id: "m1" }),
  flow("tool", "tool_result", { tool_call_id: "c1", status: "success", result: FACTS }, { message_id: "m1" }),
  flow("tool", "tool_call", { tool_call_id: "c2", name: "get_tide", arguments: {} }, { message_id: "m1" }),
  flow("tool", "tool_result", { tool_call_id: "c2", status: "error", result: {}, error: { message: "no sea here" } }, { message_id: "m1" }),
  flow("business", "error", { code: "QUOTA_EXCEEDED", message: "配额不足" }),
  ...TEXT.map((delta, index) => flow("llm", "message", { delta }, { message_id: "m1", index: index + 1 })),
  flow("workflow", "status", { node_id: "node_1", state: "end" }),
  flow("system", "done", {}, { meta: { prompt_tokens: 100, completion_tokens: 20, latency_ms: 2300 } }),
];

/** The frames of each document's run. */
export const CORPUS = { loom, "streaming-engine": streamingEngine, agio, "social-app": socialApp, "easyflow-chat": easyflow };

/** What all of them tell. */
export const ANSWER = TEXT.join("");
export const CALLS = [
  { id: "c1", name: "get_weather", arguments: ARGUMENTS, failed: false },
  { id: "c2", name: "get_tide", arguments: {}, failed: true },
];

const written = shared(async (server) => {
  for (const [dialect, frames] of Object.entries(CORPUS)) await server.run(`corpus-${dialect}`, dialect, frames);
});

/** Reads the run of every document in one dialect, and hands each to `look` with the name of its document. */
export async function fromEveryDocument(server, dialect, look, query = "") {
  await written(server);
  for (const source of Object.keys(CORPUS)) await look(await server.frames(`corpus-${source}`, dialect, query), source);
}

/** Reads the runs of the other documents. */
export function fromOtherDocuments(server, dialect, look, query) {
  return fromEveryDocument(server, dialect, (frames, source) => (source === dialect ? undefined : look(frames, source)), query);
}

/** Gives the run of a document, after it was written. */
export async function corpusRun(server, dialect) {
  await written(server);
  return `corpus-${dialect}`;
}

/** The readers of each dialect: how a client that can only append puts the answer together. */
export const WORDS = {
  loom: (frames) => frames.filter(({ type }) => type === "message_chunk").map(({ content }) => content).join(""),
  "streaming-engine": (frames) => frames.filter(({ type }) => type === "content").map(({ data }) => data.content).join(""),
  agio: (frames) => frames.filter(({ type }) => type === "text_delta").map(({ data }) => data.content).join(""),
  "social-app": (frames) => frames.filter(({ type }) => type === "TEXT_MESSAGE_END").map(({ answer }) => answer).join(""),
  "easyflow-chat": (frames) => frames.filter(({ domain, type }) => domain === "llm" && type === "message").map(({ payload }) => payload.delta ?? payload.content).join(""),
  "ag-ui": (frames) => frames.filter(({ type }) => type === "TEXT_MESSAGE_CONTENT").map(({ delta }) => delta).join(""),
};

/** Reads the words of a run as each dialect's clients see them. Loom's own readers see the reply. */
export async function wordsInEveryDialect(server, run, except = []) {
  const words = {};
  for (const [dialect, read] of Object.entries(WORDS)) {
    if (!except.includes(dialect)) words[dialect] = read(await server.frames(run, dialect));
  }
  words.text = await server.text(`/v1/runs/${run}/events?dialect=text&follow=false`, "text/plain");
  return words;
}
