// Loom's document, played by readers and agents that are written from it alone.
import assert from "node:assert/strict";
import { ANSWER, WORDS, corpusRun, fromEveryDocument, fromOtherDocuments, wordsInEveryDialect } from "../corpus.mjs";
import { assertFields, assertHas, blocks, events, framed, openBody, shared, until, without } from "../client.mjs";

const ENVELOPE = ["session_id", "node_id", "event_id"];
const payload = (frame) => without(frame, ...ENVELOPE, "runwire");
const isResult = (result) => result === "Ok" || (typeof result?.Err === "string" && Object.keys(result).length === 1);

/** §4.2: the payload of each type. */
const TYPES = {
  run_start: { "run_id?": "string", "message?": "string", "agent?": "string" },
  node_enter: { id: "string" },
  node_exit: { id: "string", result: isResult },
  message_chunk: { content: "string", id: "string" },
  usage: { prompt_tokens: "number", completion_tokens: "number", total_tokens: "number" },
  values: { state: "any" },
  updates: { id: "string", state: "any" },
  custom: { value: "any" },
  checkpoint: { checkpoint_id: "any", timestamp: "any", step: "any", state: "any", thread_id: "any", checkpoint_ns: "any" },
  tot_expand: { candidates: "list" },
  tot_evaluate: { chosen: "number", scores: "list" },
  tot_backtrack: { reason: "string", to_depth: "number" },
  got_plan: { node_count: "any", edge_count: "any", node_ids: "any" },
  got_node_start: { id: "string" },
  got_node_complete: { id: "string", result_summary: "string" },
  got_node_failed: { id: "string", error: "string" },
  got_expand: { node_id: "string", nodes_added: "any", edges_added: "any" },
  tool_call_chunk: { "call_id?": "string", "name?": "string", arguments_delta: "string" },
  tool_call: { "call_id?": "string", name: "string", arguments: "object" },
  tool_start: { "call_id?": "string", name: "string" },
  tool_output: { "call_id?": "string", name: "string", content: "string" },
  tool_end: { "call_id?": "string", name: "string", result: "string", is_error: "boolean" },
  tool_approval: { "call_id?": "string", name: "string", arguments: "object" },
};

/** §6: the key of each type in the export form. */
const EXPORT_KEYS = {
  run_start: "RunStart", node_enter: "TaskStart", node_exit: "TaskEnd", message_chunk: "Messages", usage: "Usage", values: "Values",
  updates: "Updates", custom: "Custom", checkpoint: "Checkpoint", tot_expand: "TotExpand", tot_evaluate: "TotEvaluate",
  tot_backtrack: "TotBacktrack", got_plan: "GotPlan", got_node_start: "GotNodeStart", got_node_complete: "GotNodeComplete",
  got_node_failed: "GotNodeFailed", got_expand: "GotExpand", tool_call_chunk: "ToolCallChunk", tool_call: "ToolCall",
  tool_start: "ToolStart", tool_output: "ToolOutput", tool_end: "ToolEnd", tool_approval: "ToolApproval",
};

/** §4.3 and §5, as they stand in the document. */
const EXAMPLE = String.raw`{"session_id":"sess-001","event_id":0,"type":"run_start","run_id":"run-1","message":"Hello","agent":"react"}
{"session_id":"sess-001","node_id":"run-think-1","event_id":1,"type":"node_enter","id":"think"}
{"session_id":"sess-001","node_id":"run-think-1","event_id":2,"type":"message_chunk","content":"I","id":"think"}
{"session_id":"sess-001","node_id":"run-think-1","event_id":3,"type":"message_chunk","content":" don't","id":"think"}
{"session_id":"sess-001","node_id":"run-think-1","event_id":4,"type":"usage","prompt_tokens":100,"completion_tokens":62,"total_tokens":162}
{"session_id":"sess-001","node_id":"run-think-1","event_id":5,"type":"node_exit","id":"think","result":"Ok"}
{"session_id":"sess-001","node_id":"run-think-1","event_id":8,"reply":"I don't have access to your device's clock ..."}`
  .split("\n")
  .map((line) => JSON.parse(line));
const BARE_EXAMPLE = [
  { type: "run_start", run_id: "run-1", agent: "react" },
  { type: "node_enter", id: "think" },
  { type: "message_chunk", content: "Hello", id: "think" },
  { type: "node_exit", id: "think", result: "Ok" },
];

/** A frame of every type, in an order that an agent may send them. */
const EVERY_TYPE = [
  { type: "run_start", run_id: "every", message: "Hello", agent: "got" },
  { type: "node_enter", id: "plan" },
  { type: "got_plan", node_count: 2, edge_count: 1, node_ids: ["a", "b"] },
  { type: "got_node_start", id: "a" },
  { type: "got_node_complete", id: "a", result_summary: "fine" },
  { type: "got_node_start", id: "b" },
  { type: "got_node_failed", id: "b", error: "no" },
  { type: "got_expand", node_id: "a", nodes_added: 1, edges_added: 2 },
  { type: "tot_expand", candidates: ["one", "two"] },
  { type: "tot_evaluate", chosen: 1, scores: [0.25, 0.75] },
  { type: "tot_backtrack", reason: "dead end", to_depth: 0 },
  { type: "node_exit", id: "plan", result: { Err: "gave up" } },
  { type: "node_enter", id: "act" },
  { type: "tool_call_chunk", call_id: "c1", name: "search", arguments_delta: '{"q":' },
  { type: "tool_call_chunk", call_id: "c1", arguments_delta: '"x"}' },
  { type: "tool_call", call_id: "c1", name: "search", arguments: { q: "x", none: null } },
  { type: "tool_start", call_id: "c1", name: "search" },
  { type: "tool_output", call_id: "c1", name: "search", content: "line 1\n" },
  { type: "tool_output", call_id: "c1", name: "search", content: "line 2\n" },
  { type: "tool_end", call_id: "c1", name: "search", result: "2 lines", is_error: false },
  { type: "tool_call", call_id: "c2", name: "fetch", arguments: {} },
  { type: "tool_start", call_id: "c2", name: "fetch" },
  { type: "tool_end", call_id: "c2", name: "fetch", result: "not there", is_error: true },
  { type: "message_chunk", content: "Done.", id: "act" },
  { type: "usage", prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 },
  { type: "updates", id: "act", state: { messages: ["Done."], nothing: null } },
  { type: "values", state: { messages: ["Done."], n: 1.5 } },
  { type: "custom", value: ["any", { JSON: true }, null] },
  { type: "checkpoint", checkpoint_id: "cp-1", timestamp: "1763300000", step: 3, state: { n: 1 }, thread_id: "t", checkpoint_ns: "" },
  { type: "node_exit", id: "act", result: "Ok" },
  { reply: "Done." },
];

const everyType = shared(async (server) => {
  await server.run("loom-every", "loom", EVERY_TYPE);
  return server.frames("loom-every", "loom");
});
const example = shared(async (server) => {
  await server.push("/v1/threads/sess-001/events?dialect=loom", EXAMPLE);
  return server.read("/v1/threads/sess-001/events", "loom");
});

/** Finds the frames of a type that came back, beside those that were sent. */
async function roundTrip(server, type) {
  const came = (await everyType(server)).filter((frame) => frame.type === type);
  const sent = EVERY_TYPE.filter((frame) => frame.type === type);
  assert.ok(sent.length > 0);
  for (const frame of came) assertFields(frame, TYPES[type], type);
  return { came: came.map(payload), sent };
}

async function comesBack(server, type) {
  const { came, sent } = await roundTrip(server, type);
  assert.deepEqual(came, sent);
}

/** §7.2: a receiver that removes duplicates by `event_id`, sorts by it, and takes sessions apart. */
class Receiver {
  sessions = new Map();

  take(frame) {
    const seen = this.sessions.get(frame.session_id) ?? new Map();
    this.sessions.set(frame.session_id, seen);
    if (!seen.has(frame.event_id)) seen.set(frame.event_id, frame);
  }

  frames(session) {
    return [...(this.sessions.get(session)?.values() ?? [])].sort((one, other) => one.event_id - other.event_id);
  }
}

/** One round of a session. */
const round = (session, run, words, from = 1) => {
  const node_id = `run-think-${run}`;
  return [
    { session_id: session, event_id: from, type: "run_start", run_id: run, message: `ask ${run}`, agent: "react" },
    { session_id: session, node_id, event_id: from + 1, type: "node_enter", id: "think" },
    { session_id: session, node_id, event_id: from + 2, type: "message_chunk", content: words, id: "think" },
    { session_id: session, node_id, event_id: from + 3, type: "node_exit", id: "think", result: "Ok" },
    { session_id: session, node_id, event_id: from + 4, reply: words },
  ];
};

/** Two sessions of two rounds each, frame by frame in turns. */
const interleaved = (one, other) => {
  const first = [...round(one, `${one}-1`, "A1"), ...round(one, `${one}-2`, "A2", 6)];
  const second = [...round(other, `${other}-1`, "B1"), ...round(other, `${other}-2`, "B2", 6)];
  return first.flatMap((frame, at) => [frame, second[at]]);
};

const isIncreasing = (numbers) => numbers.every((number, at) => at === 0 || number > numbers[at - 1]);
const ids = (frames) => frames.map(({ event_id }) => event_id);

const byType = Object.fromEntries(
  ["node_enter", "node_exit", "message_chunk", "usage", "values", "updates", "custom", "checkpoint", "tot_expand", "tot_evaluate", "tot_backtrack", "got_plan", "got_node_start", "got_node_complete", "got_node_failed", "tool_call_chunk", "tool_call", "tool_start", "tool_output"]
    .map((type) => [`type_${type}`, (server) => comesBack(server, type)]),
);

export const tests = {
  ...byType,

  async every_frame_is_one_json_object(server) {
    await everyType(server);
    const lines = (await server.text("/v1/runs/loom-every/events?dialect=loom&follow=false", "application/x-ndjson")).split("\n").filter((line) => line !== "");
    const objects = lines.map((line) => JSON.parse(line));
    assert.ok(objects.every((frame) => typeof frame === "object" && !Array.isArray(frame)));
    assert.equal(objects.length, EVERY_TYPE.length);
    const streamed = await events(await server.request("/v1/runs/loom-every/events?dialect=loom"));
    assert.deepEqual(streamed.map(({ frame }) => frame), objects, "the same over SSE");
  },

  async a_program_writes_frames_on_stdout(server) {
    const started = await (await server.post("/v1/runs", { agent: "loom", message: "hi", thread_id: "loom-stdout" })).json();
    const seen = (await events(await server.request(`/v1/runs/${started.run_id}/events?dialect=loom`))).map(({ frame }) => frame);
    assert.equal(WORDS.loom(seen), "你好，世界");
    assertHas(seen.at(-1), { reply: "你好，世界", session_id: "loom-stdout" });
  },

  async runwire_exec_takes_frames_from_stdout(server) {
    const lines = framed([{ type: "run_start", agent: "react" }, { type: "message_chunk", content: "你好", id: "think" }, { reply: "你好" }]);
    const { code, stderr } = await server.command(["exec", "--run", "loom-exec", "--dialect", "loom", "--", "printf", "%s", lines]);
    assert.equal(code, 0, stderr);
    assert.equal((await server.frames("loom-exec", "loom")).at(-1).reply, "你好");
  },

  async frames_pass_in_http_chunks_as_they_happen(server) {
    const body = openBody(server, "/v1/runs/loom-chunks/events?dialect=loom");
    const [start, enter, chunk, ...rest] = round("loom-chunks", "r", "while it is open");
    // A frame in two pieces, in the middle of a character.
    const bytes = Buffer.from(framed([{ ...start, message: "问" }, enter, chunk]));
    const cut = bytes.indexOf(Buffer.from("问")) + 1;
    await body.write(bytes.subarray(0, cut));
    await body.write(bytes.subarray(cut));
    const response = await until(async () => {
      const tried = await server.request("/v1/runs/loom-chunks/events?dialect=loom");
      return tried.status === 200 ? tried : undefined;
    });
    const stream = blocks(response);
    const seen = [];
    const next = async () => {
      for (;;) {
        const { value, done } = await stream.next();
        assert.ok(!done);
        if (value.data !== undefined) return seen.push(JSON.parse(value.data));
      }
    };
    for (let count = 0; count < 3; count++) await next();
    assert.deepEqual([seen[0].message, seen[2].content], ["问", "while it is open"]);
    await body.write(framed(rest));
    assert.equal((await body.end()).answer.accepted, 5);
    await next();
    await next();
    assert.equal(seen.at(-1).reply, "while it is open");
  },

  async a_websocket_sends_the_frames_themselves(server) {
    const socket = await server.socket("/loom?frames=plain");
    socket.send({ type: "run", id: "1", message: "hi", agent: "loom", thread_id: "loom-plain-socket" });
    const seen = [];
    while (seen.at(-1)?.reply === undefined) seen.push(await socket.next());
    socket.close();
    for (const frame of seen.slice(0, -1)) assertFields(frame, { type: Object.keys(TYPES), session_id: ["loom-plain-socket"], event_id: "number" }, "a message");
    assert.equal(seen.at(-1).reply, "你好，世界");
  },

  async a_websocket_takes_the_frames_of_an_agent(server) {
    const socket = await server.socket("/v1/ws");
    const frames = round("loom-ws", "r", "over a socket");
    socket.send({ op: "write", id: 1, run: "loom-ws-run", dialect: "loom", frames });
    assertHas(await socket.next(), { op: "ack", accepted: 5 });
    socket.close();
    assert.equal(WORDS.loom(await server.frames("loom-ws-run", "loom")), "over a socket");
  },

  async a_stream_has_events_and_a_reply_only(server) {
    await fromEveryDocument(server, "loom", (frames, source) => {
      for (const frame of frames) assert.ok("type" in frame !== "reply" in frame, `${source}: ${JSON.stringify(frame)} is neither an event nor a reply`);
    });
  },

  async a_session_is_one_thread(server) {
    await server.push("/v1/threads/loom-session/events?dialect=loom", [...round("loom-session", "loom-session-1", "a"), ...round("loom-session", "loom-session-2", "b", 6)]);
    const { runs } = await server.get("/v1/runs?thread=loom-session");
    assert.deepEqual(runs.map(({ run_id }) => run_id).sort(), ["loom-session-1", "loom-session-2"]);
  },

  async all_frames_of_a_node_run_share_its_node_id(server) {
    await fromEveryDocument(server, "loom", (frames, source) => {
      let open;
      for (const frame of frames) {
        if (frame.type === "node_enter") open = frame.node_id;
        if (open !== undefined && frame.type !== "got_expand") assert.equal(frame.node_id, open, `${source}: ${JSON.stringify(frame)}`);
        if (frame.type === "node_exit") open = undefined;
      }
    });
  },

  async the_reply_is_the_last_message_of_its_run(server) {
    await fromEveryDocument(server, "loom", (frames, source) => {
      const replies = frames.filter((frame) => "reply" in frame);
      assert.deepEqual(replies, frames.slice(-1), source);
    });
  },

  async frames_without_envelope_are_accepted(server) {
    await server.push("/v1/runs/loom-bare/events", [...BARE_EXAMPLE, { reply: "Hello" }]);
    const frames = await server.frames("loom-bare", "loom");
    assert.deepEqual(frames.map(({ type }) => type), ["run_start", "node_enter", "message_chunk", "node_exit", undefined]);
    assert.equal(frames.at(-1).reply, "Hello");
  },

  async every_frame_carries_the_envelope(server) {
    await fromEveryDocument(server, "loom", (frames, source) => {
      const first = frames.findIndex(({ type }) => type === "node_enter");
      frames.forEach((frame, at) => {
        assertFields(frame, { session_id: "string", event_id: "number" }, source);
        if (first !== -1 && at >= first) assertFields(frame, { node_id: "string" }, source);
      });
    });
  },

  async the_session_id_stays_the_same(server) {
    await server.push("/v1/threads/loom-same/events?dialect=loom", [...round("loom-same", "loom-same-1", "a"), ...round("loom-same", "loom-same-2", "b", 6)]);
    const frames = await server.read("/v1/threads/loom-same/events", "loom");
    assert.deepEqual([...new Set(frames.map(({ session_id }) => session_id))], ["loom-same"]);
  },

  async the_session_id_of_the_agent_is_kept(server) {
    await server.push("/v1/runs/loom-own-session/events?dialect=loom&thread=another-name", round("sess-of-the-agent", "r", "hi"));
    const frames = await server.frames("loom-own-session", "loom");
    assert.deepEqual([...new Set(frames.map(({ session_id }) => session_id))], ["sess-of-the-agent"]);
  },

  async the_node_id_of_the_agent_is_kept(server) {
    const frames = await example(server);
    assert.deepEqual(frames.map(({ node_id }) => node_id), EXAMPLE.map(({ node_id }) => node_id));
    // An outer node's interval goes on while an inner one is open.
    const sent = [
      { type: "run_start" },
      { node_id: "run-outer-1", type: "node_enter", id: "outer" },
      { node_id: "run-inner-7", type: "node_enter", id: "inner" },
      { node_id: "run-outer-1", type: "message_chunk", content: "out", id: "outer" },
      { node_id: "run-outer-1", type: "usage", prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
      { node_id: "run-outer-1", type: "node_exit", id: "outer", result: "Ok" },
      { node_id: "run-inner-7", type: "node_exit", id: "inner", result: "Ok" },
      { node_id: "run-outer-1", reply: "out" },
    ];
    await server.run("loom-beside", "loom", sent);
    const beside = await server.frames("loom-beside", "loom");
    assert.deepEqual(beside.map(({ node_id }) => node_id), sent.map(({ node_id }) => node_id));
  },

  async a_repeated_node_id_is_two_node_runs(server) {
    const node = (words) => [
      { node_id: "run-think-1", type: "node_enter", id: "think" },
      { node_id: "run-think-1", type: "message_chunk", content: words, id: "think" },
      { node_id: "run-think-1", type: "node_exit", id: "think", result: "Ok" },
    ];
    await server.run("loom-repeat", "loom", [{ type: "run_start" }, ...node("one "), ...node("two"), { node_id: "run-think-1", reply: "one two" }]);
    const frames = await server.frames("loom-repeat", "loom");
    assert.deepEqual(frames.map(({ type }) => type), ["run_start", "node_enter", "message_chunk", "node_exit", "node_enter", "message_chunk", "node_exit", undefined]);
    const { steps } = await server.get("/v1/runs/loom-repeat/message");
    assert.equal(steps.length, 2);
  },

  async after_an_inner_node_the_outer_node_id_returns(server) {
    const sent = [
      { type: "run_start" },
      { node_id: "run-outer-1", type: "node_enter", id: "outer" },
      { node_id: "run-inner-7", type: "node_enter", id: "inner" },
      { node_id: "run-inner-7", type: "message_chunk", content: "in", id: "inner" },
      { node_id: "run-inner-7", type: "node_exit", id: "inner", result: "Ok" },
      { node_id: "run-outer-1", type: "message_chunk", content: "out", id: "outer" },
      { node_id: "run-outer-1", type: "usage", prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
      { node_id: "run-outer-1", type: "node_exit", id: "outer", result: "Ok" },
      { node_id: "run-outer-1", reply: "inout" },
    ];
    await server.run("loom-nested", "loom", sent);
    const nodes = async (run) => (await server.frames(run, "loom")).map(({ node_id }) => node_id);
    assert.deepEqual(await nodes("loom-nested"), sent.map(({ node_id }) => node_id));
    // Without ids of the agent, the server's own do the same.
    await server.run("loom-nested-bare", "loom", sent.map((frame) => without(frame, "node_id")));
    const [, outer, inner, , innerExit, chunk, usage, outerExit, reply] = await nodes("loom-nested-bare");
    assert.notEqual(outer, inner);
    assert.deepEqual([innerExit, chunk, usage, outerExit, reply], [inner, outer, outer, outer, outer]);
  },

  async event_ids_grow(server) {
    await fromEveryDocument(server, "loom", (frames, source) => assert.ok(isIncreasing(ids(frames)), `${source}: ${ids(frames)}`));
  },

  async event_ids_grow_over_the_runs_of_a_session(server) {
    const sent = [...round("loom-grow", "loom-grow-1", "first"), ...round("loom-grow", "loom-grow-2", "second", 6), ...round("loom-grow", "loom-grow-3", "third", 11)];
    await server.push("/v1/threads/loom-grow/events?dialect=loom", sent);
    const frames = await server.read("/v1/threads/loom-grow/events", "loom");
    assert.ok(isIncreasing(ids(frames)), `${ids(frames)}`);
    const receiver = new Receiver();
    for (const frame of [...frames, ...frames]) receiver.take(frame);
    assert.deepEqual(receiver.frames("loom-grow").map(payload), sent.map(payload));
    assert.deepEqual(ids(await server.frames("loom-grow-2", "loom")), [1, 2, 3, 4, 5]);
  },

  async event_ids_are_stable(server) {
    const whole = await everyType(server);
    assert.deepEqual(await server.frames("loom-every", "loom"), whole);
    const { frames: page, next } = await server.get("/v1/runs/loom-every/events?dialect=loom&limit=7");
    const rest = await server.frames("loom-every", "loom", `&after=${next}`);
    assert.deepEqual([...page.map(({ frame }) => frame), ...rest], whole, "also from the middle on");
  },

  async the_id_of_a_body_is_the_name_of_the_node(server) {
    const frames = (await example(server)).filter(({ type }) => ["node_enter", "node_exit", "message_chunk"].includes(type));
    assert.deepEqual([...new Set(frames.map(({ id }) => id))], ["think"]);
    assert.ok(frames.every(({ id, node_id }) => id !== node_id));
  },

  async frames_are_utf8(server) {
    const words = "你好，世界 🌍 \u0000 é";
    await server.run("loom-utf8", "loom", [{ type: "message_chunk", content: words, id: "agent" }, { reply: words }]);
    const response = await server.request("/v1/runs/loom-utf8/events?dialect=loom&follow=false", { headers: { Accept: "application/x-ndjson" } });
    const text = new TextDecoder("utf-8", { fatal: true }).decode(await response.arrayBuffer());
    assert.equal(JSON.parse(text.trim().split("\n").at(-1)).reply, words);
    const { status } = await server.write("/v1/runs/loom-latin/events?dialect=loom", Buffer.from([0x7b, 0xe9, 0x7d]).toString("latin1"));
    assert.notEqual(status, 200);
  },

  async the_order_of_frames_is_the_order_of_events(server) {
    assert.deepEqual((await everyType(server)).map(({ type }) => type), EVERY_TYPE.map(({ type }) => type));
  },

  async every_event_has_a_type(server) {
    await fromEveryDocument(server, "loom", (frames, source) => {
      for (const frame of frames.filter((each) => !("reply" in each))) assertFields(frame, { type: "string" }, source);
    });
    const { status } = await server.write("/v1/runs/loom-typeless/events?dialect=loom", [{ content: "x" }]);
    assert.equal(status, 422);
  },

  async the_payload_stands_beside_the_envelope(server) {
    assert.deepEqual(Object.keys((await example(server))[2]).sort(), ["content", "event_id", "id", "node_id", "session_id", "type"]);
  },

  async runs_of_other_dialects_become_documented_events(server) {
    await fromOtherDocuments(server, "loom", (frames, source) => {
      for (const frame of frames) {
        if ("reply" in frame) assertFields(frame, { reply: "string" }, source);
        else if (frame.type !== "thought_chunk") assertFields(frame, { type: Object.keys(TYPES), ...TYPES[frame.type] }, source);
      }
      assert.equal(WORDS.loom(frames), ANSWER, source);
      const calls = frames.filter(({ type }) => type === "tool_call").map(({ name }) => name);
      assert.deepEqual(calls, ["get_weather", "get_tide"], source);
      const ends = frames.filter(({ type }) => type === "tool_end").map(({ is_error }) => is_error);
      assert.deepEqual(ends, [false, true], source);
    });
  },

  async type_run_start(server) {
    const frames = await everyType(server);
    assertHas(frames[0], { type: "run_start", message: "Hello", agent: "got" });
    assertFields(frames[0], { ...TYPES.run_start, run_id: "string" }, "run_start");
    assert.ok(frames.findIndex(({ type }) => type === "node_enter") > 0);
    const [named] = await example(server);
    assertHas(named, { run_id: "run-1", message: "Hello", agent: "react" });
  },

  async the_agent_in_run_start_is_what_the_agent_said(server) {
    const { run_id } = await (await server.post("/v1/runs", { agent: "loom", message: "hi", thread_id: "loom-agent-name" })).json();
    const [{ frame }] = await events(await server.request(`/v1/runs/${run_id}/events?dialect=loom`));
    assert.equal(frame.agent, "react");
    assert.equal((await server.get(`/v1/runs/${run_id}`)).agent, "loom", "the run's row has the configured name");
    await server.run("loom-agent-pushed", "loom", EXAMPLE.map((each) => without(each, "run_id")));
    assert.equal((await server.get("/v1/runs/loom-agent-pushed")).agent, "react", "the row takes the agent's name where none is configured");
  },

  async type_got_expand(server) {
    const { came, sent } = await roundTrip(server, "got_expand");
    assert.deepEqual(came.map((frame) => ({ ...frame, node_id: "a" })), sent);
    const [frame] = (await everyType(server)).filter(({ type }) => type === "got_expand");
    assert.equal(frame.node_id, "a", "the payload's");
  },

  async type_tool_end(server) {
    await comesBack(server, "tool_end");
    await fromOtherDocuments(server, "loom", (frames, source) => {
      for (const frame of frames.filter(({ type }) => type === "tool_end")) assertFields(frame, TYPES.tool_end, source);
      const [, failed] = frames.filter(({ type }) => type === "tool_end");
      assert.equal(failed.result, "no sea here", source);
    });
  },

  async type_tool_approval(server) {
    for (const [approved, result] of [[true, "gone"], [false, "refused"]]) {
      const socket = await server.socket("/loom");
      socket.send({ type: "run", id: "1", message: "approve", agent: "loom", thread_id: `loom-approval-${approved}` });
      const frames = [];
      for (;;) {
        const message = await socket.next();
        if (message.type === "run_end") break;
        if (message.type !== "run_stream_event") continue;
        frames.push(message.event);
        if (message.event.type !== "tool_approval") continue;
        assertFields(message.event, TYPES.tool_approval, "tool_approval");
        assertHas(message.event, { call_id: "call-1", name: "delete_file", arguments: { path: "/tmp/x" } });
        socket.send({ type: "answer", id: "1", call_id: "call-1", approved });
      }
      socket.close();
      assertHas(frames.find(({ type }) => type === "tool_end"), { call_id: "call-1", result, is_error: !approved });
    }
  },

  async a_tool_call_keeps_its_order(server) {
    const frames = (await everyType(server)).filter(({ call_id }) => call_id === "c1").map(({ type }) => type);
    assert.deepEqual(frames, ["tool_call_chunk", "tool_call_chunk", "tool_call", "tool_start", "tool_output", "tool_output", "tool_end"]);
    await fromOtherDocuments(server, "loom", (other, source) => {
      const types = other.filter(({ call_id }) => call_id === "c1").map(({ type }) => type);
      assert.ok(types.indexOf("tool_call") < types.indexOf("tool_end") && types.at(-1) === "tool_end", `${source}: ${types}`);
      assert.ok(types.includes("tool_call"), source);
    });
  },

  async calls_without_ids_are_paired(server) {
    const call = (name, result) => [
      { type: "tool_call", name, arguments: { n: name } },
      { type: "tool_start", name },
      { type: "tool_output", name, content: "…" },
      { type: "tool_end", name, result, is_error: false },
    ];
    const sent = [{ type: "run_start" }, ...call("one", "1"), ...call("two", "2"), { reply: "ok" }];
    await server.run("loom-idless", "loom", sent);
    const came = (await server.frames("loom-idless", "loom")).map(payload).filter(({ type }) => type?.startsWith("tool_"));
    assert.deepEqual(came, sent.slice(1, -1));
    const { toolCalls } = await server.get("/v1/runs/loom-idless/message");
    assert.deepEqual(toolCalls.map(({ toolName, result, output }) => [toolName, result, output]), [["one", "1", "…"], ["two", "2", "…"]]);
  },

  async the_example_with_envelope_comes_back(server) {
    await example(server);
    assert.deepEqual(await server.frames("run-1", "loom"), EXAMPLE.map((frame, at) => ({ ...frame, event_id: at + 1 })));
  },

  async the_example_without_envelope_is_accepted(server) {
    const frames = BARE_EXAMPLE.map((frame) => without(frame, "run_id"));
    await server.push("/v1/runs/loom-bare-example/events?end=true", frames);
    const came = await server.frames("loom-bare-example", "loom");
    assert.deepEqual(came.slice(1, -1).map(payload), frames.slice(1));
    for (const frame of came) assertFields(frame, { session_id: "string", event_id: "number" }, "the envelope");
  },

  async the_reply_is_complete_whatever_the_source(server) {
    await fromEveryDocument(server, "loom", (frames, source) => assert.equal(frames.at(-1).reply, ANSWER, source));
  },

  async the_reply_carries_the_envelope_of_its_run(server) {
    await fromEveryDocument(server, "loom", (frames, source) => {
      const [before, reply] = frames.slice(-2);
      assert.deepEqual([reply.session_id, reply.event_id], [before.session_id, before.event_id + 1], source);
    });
  },

  async the_reply_has_the_node_id_of_the_node_that_answered(server) {
    await server.run("loom-reply-node", "loom", [
      { type: "run_start" },
      { node_id: "run-think-1", type: "node_enter", id: "think" },
      { node_id: "run-think-1", type: "message_chunk", content: "the answer", id: "think" },
      { node_id: "run-think-1", type: "node_exit", id: "think", result: "Ok" },
      { node_id: "run-save-1", type: "node_enter", id: "save" },
      { node_id: "run-save-1", type: "node_exit", id: "save", result: "Ok" },
      { node_id: "run-think-1", reply: "the answer" },
    ]);
    assert.equal((await server.frames("loom-reply-node", "loom")).at(-1).node_id, "run-think-1");
  },

  async the_words_of_the_example_reply_are_seen_in_every_dialect(server) {
    await server.run("loom-whole", "loom", EXAMPLE.map((frame) => without(frame, "run_id")));
    const reply = EXAMPLE.at(-1).reply;
    const words = await wordsInEveryDialect(server, "loom-whole", ["loom"]);
    assert.deepEqual(words, Object.fromEntries(Object.keys(words).map((dialect) => [dialect, reply])));
    assert.equal((await server.frames("loom-whole", "loom")).at(-1).reply, reply);
    assert.equal((await server.get("/v1/runs/loom-whole/message")).mainContent, reply);
  },

  async a_new_reply_hides_nothing_that_was_said(server) {
    await server.run("loom-new-reply", "loom", [
      { type: "run_start" },
      { type: "message_chunk", content: "Let me look that up.", id: "think" },
      { type: "tool_call", call_id: "c", name: "look", arguments: {} },
      { type: "tool_end", call_id: "c", name: "look", result: "42", is_error: false },
      { reply: "It is 42." },
    ]);
    const words = await wordsInEveryDialect(server, "loom-new-reply", ["loom"]);
    for (const [dialect, text] of Object.entries(words)) {
      assert.equal(text.replaceAll(/\s/g, ""), "Letmelookthatup.Itis42.", dialect);
    }
    const { mainContent } = await server.get("/v1/runs/loom-new-reply/message");
    assert.equal(mainContent, "Let me look that up.\n\nIt is 42.");
  },

  async a_repeated_reply_is_shown_once(server) {
    const said = (content) => ({ type: "message_chunk", content, id: "think" });
    const call = [{ type: "tool_call", call_id: "c", name: "look", arguments: {} }, { type: "tool_end", call_id: "c", name: "look", result: "42", is_error: false }];
    const cases = {
      "white-space": [[said("Line one\n"), said("line two")], "Line one line two", "Line one\nline two"],
      "last-message": [[said("Looking."), ...call, said("It is 42.")], "It is 42.", "Looking.\n\nIt is 42."],
      everything: [[said("Looking."), ...call, said("It is 42.")], "Looking.\n\nIt is 42.", "Looking.\n\nIt is 42."],
      truncated: [[said("It is 42, as ever.")], "It is 42", "It is 42, as ever."],
      "first-message": [[said("It is 42."), ...call, said("Saved.")], "It is 42.", "It is 42.\n\nSaved."],
      "rest-of-the-last": [[said("Looking."), ...call, said("It is")], "It is 42.", "Looking.\n\nIt is 42."],
    };
    for (const [name, [frames, reply, expected]] of Object.entries(cases)) {
      const run = `loom-reply-${name}`;
      await server.run(run, "loom", [{ type: "run_start" }, ...frames, { reply }]);
      const bare = (text) => text.replaceAll(/\s/g, "");
      for (const [dialect, text] of Object.entries(await wordsInEveryDialect(server, run, ["loom"]))) {
        assert.equal(bare(text), bare(expected), `${name}, read as ${dialect}`);
      }
      assert.equal((await server.get(`/v1/runs/${run}/message`)).mainContent, expected, name);
      assert.equal((await server.frames(run, "loom")).at(-1).reply, reply, name);
    }
  },

  async every_type_has_its_export_key(server) {
    await everyType(server);
    await server.run("loom-export-approval", "loom", [{ type: "tool_approval", call_id: "c", name: "rm", arguments: {} }]);
    const frames = [...(await server.frames("loom-every", "loom-export")), ...(await server.frames("loom-export-approval", "loom-export"))];
    const keys = frames.map((frame) => Object.keys(frame)).map((names) => (assert.equal(names.length, 1), names[0]));
    for (const [type, key] of Object.entries(EXPORT_KEYS)) assert.ok(keys.includes(key), `${type} must be written as ${key}; there are ${[...new Set(keys)]}`);
  },

  async the_export_form_means_the_same(server) {
    await everyType(server);
    const exported = await server.frames("loom-every", "loom-export");
    await server.run("loom-from-export", "loom-export", exported);
    const told = (frames) => frames.map((frame) => without(payload(frame), "run_id", frame.type === "tool_call_chunk" ? "name" : ""));
    assert.deepEqual(told(await server.frames("loom-from-export", "loom")), told(await everyType(server)));
  },

  async every_run_ends_with_a_reply(server) {
    const said = [{ type: "run_start" }, { type: "node_enter", id: "think" }, { type: "message_chunk", content: "so far", id: "think" }];
    await server.run("loom-fails", "loom", said);
    const { run_id } = await (await server.post("/v1/runs", { agent: "endless", thread_id: "loom-cancelled" })).json();
    await server.post(`/v1/runs/${run_id}/cancel`, {});
    await server.push("/v1/runs/loom-fails/events?dialect=loom", [{ reply: "so far", stop_reason: "error", error: "broke" }]);
    for (const run of [run_id, "loom-fails"]) {
      const frames = (await events(await server.request(`/v1/runs/${run}/events?dialect=loom`))).map(({ frame }) => frame);
      assertFields(frames.at(-1), { reply: "string", session_id: "string", event_id: "number" }, run);
    }
  },

  async event_ids_begin_at_1(server) {
    await fromEveryDocument(server, "loom", (frames, source) => assert.deepEqual(ids(frames), frames.map((_, at) => at + 1), source));
  },

  async node_ids_are_set_whatever_the_source(server) {
    for (const source of ["agio", "social-app", "easyflow-chat"]) {
      const frames = await server.frames(await corpusRun(server, source), "loom");
      const nodes = frames.filter(({ type }) => type === "node_enter" || type === "node_exit");
      assert.deepEqual(nodes.map(({ type }) => type), ["node_enter", "node_exit"], source);
      assert.deepEqual([...new Set([...nodes, frames.at(-1)].map(({ node_id }) => node_id))].length, 1, source);
    }
  },

  async interleaved_sessions_are_taken_apart(server) {
    const sent = interleaved("loom-merge-a", "loom-merge-b");
    const answer = await server.push("/v1/events?dialect=loom", sent);
    assert.equal(answer.accepted, sent.length);
    for (const session of ["loom-merge-a", "loom-merge-b"]) {
      const own = sent.filter(({ session_id }) => session_id === session);
      const frames = await server.read(`/v1/threads/${session}/events`, "loom");
      assert.deepEqual(frames.map((frame) => without(frame, "event_id")), own.map((frame) => without(frame, "event_id")));
      const { runs } = await server.get(`/v1/runs?thread=${session}`);
      assert.deepEqual(runs.map(({ run_id, status }) => [run_id, status]).sort(), [[`${session}-1`, "completed"], [`${session}-2`, "completed"]]);
    }
    const { status, answer: refusal } = await server.write("/v1/events?dialect=loom", [{ type: "message_chunk", content: "whose?", id: "x" }]);
    assert.deepEqual([status, refusal.line], [422, 1], "a frame that names no session is refused");
  },

  async interleaved_sessions_are_written_exactly_once(server) {
    const sent = interleaved("loom-once-a", "loom-once-b");
    const from = (seq) => ({ headers: { "Producer-Id": "loom-once", "Producer-Epoch": "1", "Producer-Seq": String(seq) } });
    await server.push("/v1/events?dialect=loom", sent.slice(0, 7), from(0));
    const again = await server.push("/v1/events?dialect=loom", sent, from(0));
    assertHas(again, { accepted: sent.length - 7, duplicates: 7 });
    for (const session of ["loom-once-a", "loom-once-b"]) {
      assert.equal((await server.read(`/v1/threads/${session}/events`, "loom")).length, 10);
    }
  },

  async sessions_of_one_thread_are_parallel_runs(server) {
    const sent = interleaved("loom-side-a", "loom-side-b").slice(0, 10);
    const refused = await server.write("/v1/threads/loom-side-plain/events?dialect=loom", interleaved("loom-plain-a", "loom-plain-b"));
    assert.equal(refused.status, 409);
    assert.ok(JSON.stringify(refused.answer).includes("/v1/events"), JSON.stringify(refused.answer));
    await server.push("/v1/threads/loom-side/events?dialect=loom&parallel=true", sent);
    const frames = await server.read("/v1/threads/loom-side/events", "loom");
    for (const session of ["loom-side-a", "loom-side-b"]) {
      const own = frames.filter(({ session_id }) => session_id === session);
      assert.deepEqual(own.map(payload), sent.filter(({ session_id }) => session_id === session).map(payload));
      assert.ok(isIncreasing(ids(own)));
    }
  },

  async interleaved_sessions_are_converted_each_by_itself(server) {
    const sent = interleaved("conv-a", "conv-b");
    const { code, stdout, stderr } = await server.command(["convert", "--from", "loom", "--to", "loom"], framed(sent));
    assert.equal(code, 0, stderr);
    const frames = stdout.trimEnd().split("\n").map((line) => JSON.parse(line));
    for (const session of ["conv-a", "conv-b"]) {
      const own = frames.filter(({ session_id }) => session_id === session);
      assert.deepEqual(own.map(payload), sent.filter(({ session_id }) => session_id === session).map(payload));
      assert.ok(isIncreasing(ids(own)), `${ids(own)}`);
    }
    assert.equal(frames.length, sent.length, "no run is ended or made up");
  },

  async interleaved_sessions_are_pushed_each_to_its_thread(server) {
    const sent = interleaved("loom-push-a", "loom-push-b");
    const { code, stderr } = await server.command(["push", "--all", "--dialect", "loom"], framed(sent));
    assert.equal(code, 0, stderr);
    for (const session of ["loom-push-a", "loom-push-b"]) {
      const frames = await server.read(`/v1/threads/${session}/events`, "loom");
      assert.deepEqual(frames.map(payload), sent.filter(({ session_id }) => session_id === session).map(payload));
    }
  },

  async interleaved_sessions_are_judged_each_by_itself(server) {
    const { code, stdout, stderr } = await server.command(["validate", "--dialect", "loom"], framed(interleaved("val-a", "val-b")));
    assert.equal(code, 0, `${stdout}${stderr}`);
    // A slip of one session is found, at its line.
    const broken = interleaved("val-c", "val-d").map((frame, at) => (at === 5 ? { ...frame, content: 7 } : frame));
    const judged = await server.command(["validate", "--dialect", "loom"], framed(broken));
    assert.equal(judged.code, 1, judged.stdout);
    assert.match(judged.stdout, /line 6/);
  },

  async new_types_pass(server) {
    const invented = { type: "weather_report", id: "act", sky: { blue: true }, node: null };
    await server.run("loom-new-type", "loom", [{ type: "run_start" }, invented, { reply: "ok" }]);
    assert.deepEqual(payload((await server.frames("loom-new-type", "loom"))[1]), invented);
  },
};
