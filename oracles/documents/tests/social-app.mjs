// social-app's document, played by a reader of its stream and by runtimes that are written from it alone.
import assert from "node:assert/strict";
import { ANSWER, CALLS, corpusRun, fromEveryDocument, fromOtherDocuments } from "../corpus.mjs";
import { assertFields, assertHas, blocks, events, framed, shared, some, without } from "../client.mjs";

const D = "social-app";
const IDS = { threadId: "string", runId: "string" };
const CALL = { ...IDS, messageId: "string", toolCallId: "string", toolCallName: "string", stage: ["router", "worker"] };
const isStringOrNull = (value) => value === null || typeof value === "string";

/** §3: the fields of each type. */
const TYPES = {
  RUN_STARTED: IDS,
  RUN_FINISHED: IDS,
  RUN_ERROR: { ...IDS, message: "string", code: isStringOrNull },
  STEP_STARTED: { ...IDS, stepName: ["router", "worker"] },
  STEP_FINISHED: { ...IDS, stepName: ["router", "worker"] },
  TOOL_CALL_START: CALL,
  TOOL_CALL_ARGS: { ...CALL, args: "object" },
  TOOL_CALL_END: CALL,
  TOOL_CALL_RESULT: {
    ...IDS, messageId: "string", role: ["tool"], stage: ["router", "worker"], tool_name: "string", tool_call_id: "string", tool_call_args: "object",
    status: ["success", "failure", "partial"], result: "string", error: isStringOrNull,
  },
  TEXT_MESSAGE_END: {
    ...IDS, messageId: "string", role: ["assistant"], stage: ["router", "worker"], status: ["success", "partial_success", "failed"], answer: "string",
    key_points: "list", result_type: ["execution_report", "clarification", "error_report", "unknown"], suggested_actions: "list", error: isStringOrNull, ui_schema: "object",
  },
};
const FIGURES = { inputTokens: 1, outputTokens: 2, cost: 0.5, latencyMs: 9, model: "secret-model" };

const event = (id) => (type, fields = {}) => ({ type, threadId: `${id}-thread`, runId: id, ...fields });
const callOf = (id, name) => ({ messageId: "msg_1", toolCallId: id, toolCallName: name, stage: "worker" });
const resultOf = (id, name, more = {}) => ({ messageId: `msg_${id}`, role: "tool", stage: "worker", tool_name: name, tool_call_id: id, tool_call_args: { q: "茶" }, status: "success", result: "id=7 count=1", error: null, ...more });
const answerOf = (more = {}) => ({
  messageId: "msg_9", role: "assistant", stage: "worker", status: "success", answer: "找到一条结果", key_points: ["一条"], result_type: "execution_report",
  suggested_actions: ["打开"], error: null, ui_schema: { type: "card" }, ...more,
});
const RUN = (id) => {
  const say = event(id);
  return [
    say("RUN_STARTED"),
    say("STEP_STARTED", { stepName: "router" }),
    say("STEP_FINISHED", { stepName: "router" }),
    say("STEP_STARTED", { stepName: "worker" }),
    say("TOOL_CALL_START", callOf("call_1", "search")),
    say("TOOL_CALL_ARGS", { ...callOf("call_1", "search"), args: { q: "茶" } }),
    say("TOOL_CALL_END", callOf("call_1", "search")),
    say("TOOL_CALL_RESULT", resultOf("call_1", "search")),
    say("TOOL_CALL_START", callOf("call_2", "open")),
    say("TOOL_CALL_ARGS", { ...callOf("call_2", "open"), args: { q: "茶" } }),
    say("TOOL_CALL_END", callOf("call_2", "open")),
    say("TOOL_CALL_RESULT", resultOf("call_2", "open", { status: "failure", result: "", error: "closed" })),
    say("TOOL_CALL_START", callOf("call_3", "list")),
    say("TOOL_CALL_ARGS", { ...callOf("call_3", "list"), args: { q: "茶" } }),
    say("TOOL_CALL_END", callOf("call_3", "list")),
    say("TOOL_CALL_RESULT", resultOf("call_3", "list", { status: "partial", result: "count=3" })),
    say("TEXT_MESSAGE_END", answerOf()),
    say("STEP_FINISHED", { stepName: "worker" }),
    say("RUN_FINISHED"),
  ];
};

const run = shared(async (server) => {
  await server.run("social-run", D, RUN("social-run"));
  return server.frames("social-run", D);
});
const of = (frames, ...types) => frames.filter(({ type }) => types.includes(type));
const stream = (server, thread, headers = {}) => server.request(`/api/v1/agent/runs/${thread}/events`, { headers: { Accept: "text/event-stream", ...headers } });
const isEnd = ({ type }) => type === "RUN_FINISHED" || type === "RUN_ERROR";

/** Checks the fields of all events of some types, from every document. */
async function haveTheirFields(server, ...types) {
  await fromEveryDocument(server, D, (frames, source) => {
    for (const frame of of(frames, ...types)) assertFields(frame, TYPES[frame.type], `${source} ${frame.type}`);
  });
  for (const type of types) {
    for (const frame of some(await run(server), (each) => each.type === type, type)) assertFields(frame, TYPES[type], type);
  }
}

/** Tells where a name stands in a value. */
function places(value, name, path = "") {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => [...(key === name ? [`${path}/${key}`] : []), ...places(inner, name, `${path}/${key}`)]);
}

export const tests = {
  async an_idle_stream_sends_keep_alive(server) {
    await server.run("social-idle", D, RUN("social-idle"));
    for await (const { text, comments } of blocks(await stream(server, "social-idle-thread"))) {
      if (!comments.includes("keep-alive")) continue;
      assert.equal(text, ": keep-alive");
      return;
    }
    assert.fail("the stream ended without a sign of life");
  },

  async the_events_of_a_runtime_are_taken(server) {
    const { run_id } = await (await server.post("/v1/runs", { agent: "social-app", message: "找茶", thread_id: "social-runtime" })).json();
    const frames = (await events(await stream(server, "social-runtime"), isEnd)).map(({ frame }) => frame);
    assert.equal(frames.at(-1).runId, run_id);
    assert.deepEqual(of(frames, "TEXT_MESSAGE_END").map(({ answer }) => answer), ["找到一条结果"]);
    assert.deepEqual(of(frames, "TOOL_CALL_RESULT").map(({ result }) => result), ["id=7 status=ok count=1"]);
  },

  async what_the_runtime_said_stays(server) {
    const own = (frame) => without(frame, "threadId", "runId");
    assert.deepEqual((await run(server)).map(own), RUN("social-run").map(own));
  },

  async history_shows_what_was_streamed(server) {
    await run(server);
    const streamed = (await events(await stream(server, "social-run-thread"), isEnd)).map(({ frame }) => frame);
    const { thread_id, events: stored, next } = await server.get("/api/v1/agent/runs/social-run-thread/history?limit=1000");
    assert.deepEqual([thread_id, stored, next], ["social-run-thread", streamed, null]);
  },

  async the_stream_is_live(server) {
    const frames = RUN("social-live");
    const path = "/v1/runs/social-live/events?dialect=social-app&thread=social-live-thread";
    await server.push(path, frames.slice(0, 2));
    const seen = await events(await stream(server, "social-live-thread"), async (frame) => {
      if (frame.type === "STEP_STARTED" && frame.stepName === "router") await server.push(path, frames.slice(2));
      return isEnd(frame);
    });
    assert.deepEqual(seen.map(({ frame }) => frame.type), frames.map(({ type }) => type));
  },

  async one_stream_shows_all_runs_of_a_thread(server) {
    const frames = (id) => RUN(id).map((frame) => ({ ...frame, threadId: "social-two" }));
    await server.push("/v1/threads/social-two/events?dialect=social-app", [...frames("social-two-1"), ...frames("social-two-2")]);
    let ends = 0;
    const seen = await events(await stream(server, "social-two"), (frame) => isEnd(frame) && ++ends === 2);
    assert.deepEqual([...new Set(seen.map(({ frame }) => frame.runId))], ["social-two-1", "social-two-2"]);
  },

  async an_event_has_id_event_and_data(server) {
    await run(server);
    for (const { id, event: name, data, frame } of await events(await stream(server, "social-run-thread"), isEnd)) {
      assert.deepEqual([typeof id, typeof name, JSON.parse(data)], ["string", "string", frame]);
    }
  },

  async ids_look_like_redis_stream_ids(server) {
    await run(server);
    for (const { id } of await events(await stream(server, "social-run-thread"), isEnd)) assert.match(id, /^\d+-\d+$/);
  },

  async last_event_id_goes_on(server) {
    await run(server);
    const all = await events(await stream(server, "social-run-thread"), isEnd);
    for (const at of [0, 4, 5, all.length - 2]) {
      const rest = await events(await stream(server, "social-run-thread", { "Last-Event-ID": all[at].id }), isEnd);
      assert.deepEqual(rest.map(({ id }) => id), all.slice(at + 1).map(({ id }) => id));
    }
  },

  async the_event_name_is_the_type(server) {
    await run(server);
    for (const { event: name, frame } of await events(await stream(server, "social-run-thread"), isEnd)) assert.equal(name, frame.type);
    for (const source of ["loom", "agio"]) {
      await corpusRun(server, source);
      for (const { event: name, frame } of await events(await stream(server, `corpus-${source}-thread`), isEnd)) assert.equal(name, frame.type);
    }
  },

  async a_run_begins_with_run_started(server) {
    await fromEveryDocument(server, D, (frames, source) => {
      assert.equal(frames[0].type, "RUN_STARTED", source);
      assertFields(frames[0], IDS, source);
    });
  },

  async a_run_ends_with_run_finished(server) {
    await fromEveryDocument(server, D, (frames, source) => {
      assert.deepEqual(frames.filter(isEnd).map(({ type }) => type), ["RUN_FINISHED"], source);
      assert.equal(frames.at(-1).type, "RUN_FINISHED", source);
    });
  },

  async run_error_has_message_and_code(server) {
    const say = event("social-error");
    await server.run("social-error", D, [say("RUN_STARTED"), say("RUN_ERROR", { message: "runtime execution failed", code: null })]);
    await server.run("social-error-agio", "agio", [{ type: "run_started", data: { query: "q" } }, { type: "error", data: { error: "runtime execution failed", error_type: "E" } }, { type: "run_failed", data: { error: "runtime execution failed", error_type: "E" } }]);
    for (const id of ["social-error", "social-error-agio"]) {
      const last = (await server.frames(id, D)).at(-1);
      assertFields(last, { type: ["RUN_ERROR"], ...TYPES.RUN_ERROR }, id);
      assert.equal(last.message, "runtime execution failed");
    }
    assert.equal((await server.frames("social-error", D)).at(-1).code, null);
  },

  async steps_have_their_fields(server) {
    const steps = of(await run(server), "STEP_STARTED", "STEP_FINISHED");
    assert.deepEqual(steps.map(({ type, stepName }) => [type, stepName]), [["STEP_STARTED", "router"], ["STEP_FINISHED", "router"], ["STEP_STARTED", "worker"], ["STEP_FINISHED", "worker"]]);
    for (const step of steps) assertFields(step, TYPES[step.type], step.type);
  },

  async step_names_are_router_or_worker(server) {
    await haveTheirFields(server, "STEP_STARTED", "STEP_FINISHED");
    const [step] = of(await server.frames(await corpusRun(server, "loom"), D), "STEP_STARTED");
    assertHas(step, { stepName: "worker", name: "act" });
  },

  tool_call_start_has_its_fields: (server) => haveTheirFields(server, "TOOL_CALL_START"),
  tool_call_args_has_an_object: (server) => haveTheirFields(server, "TOOL_CALL_ARGS"),
  tool_call_end_has_its_fields: (server) => haveTheirFields(server, "TOOL_CALL_END"),
  tool_call_result_has_its_fields: (server) => haveTheirFields(server, "TOOL_CALL_RESULT"),
  text_message_end_has_its_fields: (server) => haveTheirFields(server, "TEXT_MESSAGE_END"),

  async result_statuses_are_the_documented_ones(server) {
    assert.deepEqual(of(await run(server), "TOOL_CALL_RESULT").map(({ status }) => status), ["success", "failure", "partial"]);
    await fromEveryDocument(server, D, (frames, source) => {
      assert.deepEqual(of(frames, "TOOL_CALL_RESULT").map(({ status }) => status), ["success", "failure"], source);
    });
  },

  async results_are_strings(server) {
    await fromEveryDocument(server, D, (frames, source) => {
      for (const { result } of of(frames, "TOOL_CALL_RESULT")) assert.equal(typeof result, "string", `${source}: ${JSON.stringify(result)}`);
    });
    for (const source of ["streaming-engine", "easyflow-chat"]) {
      const [{ result }] = of(await server.frames(await corpusRun(server, source), D), "TOOL_CALL_RESULT");
      assert.deepEqual(JSON.parse(result), { temperature: 21, sky: "晴" }, source);
    }
  },

  async errors_of_results_are_messages_or_null(server) {
    await fromEveryDocument(server, D, (frames, source) => {
      assert.deepEqual(of(frames, "TOOL_CALL_RESULT").map(({ error }) => error), [null, "no sea here"], source);
    });
  },

  async results_carry_no_ui_schema(server) {
    const say = event("social-ui");
    await server.run("social-ui", D, [say("RUN_STARTED"), say("TOOL_CALL_START", callOf("c", "n")), say("TOOL_CALL_END", callOf("c", "n")), say("TOOL_CALL_RESULT", resultOf("c", "n", { ui_schema: { type: "card" } })), say("RUN_FINISHED")]);
    const [result] = of(await server.frames("social-ui", D), "TOOL_CALL_RESULT");
    assert.deepEqual(places(result, "ui_schema"), []);
    const [whole] = of(await server.frames("social-ui", D, "&fidelity=full"), "TOOL_CALL_RESULT");
    assert.deepEqual(Object.keys(whole).includes("ui_schema"), false);
  },

  async a_call_has_one_id(server) {
    await fromEveryDocument(server, D, (frames, source) => {
      for (const { id, name } of CALLS) {
        const own = frames.filter(({ toolCallId, tool_call_id }) => id === (toolCallId ?? tool_call_id));
        assert.deepEqual(own.map(({ type }) => type), ["TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_RESULT"], `${source} ${name}`);
        assert.deepEqual([...new Set(own.map(({ toolCallName, tool_name }) => toolCallName ?? tool_name))], [name], source);
      }
    });
  },

  async a_reused_id_is_found(server) {
    const frames = RUN("social-reuse");
    const twice = [...frames.slice(0, 8), ...frames.slice(4, 8), ...frames.slice(16)];
    const { code, stdout } = await server.command(["validate", "--dialect", D], framed(twice));
    assert.equal(code, 1, stdout);
    assert.match(stdout, /line 9/);
    assert.equal((await server.command(["validate", "--dialect", D], framed(frames))).code, 0);
  },

  async tool_call_args_is_the_input(server) {
    await fromEveryDocument(server, D, (frames, source) => {
      assert.deepEqual(of(frames, "TOOL_CALL_RESULT").map(({ tool_call_args }) => tool_call_args), CALLS.map(({ arguments: given }) => given), source);
      assert.deepEqual(of(frames, "TOOL_CALL_ARGS").map(({ args }) => args), CALLS.map(({ arguments: given }) => given), source);
    });
  },

  async the_result_is_the_output_alone(server) {
    await fromEveryDocument(server, D, (frames, source) => {
      const [{ result }] = some(frames, ({ type }) => type === "TOOL_CALL_RESULT", source);
      assert.ok(result.includes("晴") && !result.includes("Beijing"), `${source}: ${result}`);
    });
  },

  async texts_come_whole(server) {
    await fromEveryDocument(server, D, (frames, source) => {
      assert.deepEqual(of(frames, "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_CHUNK"), [], source);
      assert.deepEqual(of(frames, "TEXT_MESSAGE_END").map(({ answer }) => answer), [ANSWER], source);
    });
  },

  async text_statuses_are_the_documented_ones(server) {
    for (const status of ["success", "partial_success", "failed"]) {
      const say = event(`social-text-${status}`);
      await server.run(`social-text-${status}`, D, [say("RUN_STARTED"), say("TEXT_MESSAGE_END", answerOf({ status })), say("RUN_FINISHED")]);
      assert.equal(of(await server.frames(`social-text-${status}`, D), "TEXT_MESSAGE_END")[0].status, status);
    }
    await server.run("social-text-cut", "loom", [{ type: "run_start" }, { type: "message_chunk", content: "half", id: "x" }, { reply: "half", stop_reason: "error", error: "broke" }]);
    const [cut] = of(await server.frames("social-text-cut", D), "TEXT_MESSAGE_END");
    assert.deepEqual([cut.answer, cut.status], ["half", "failed"]);
  },

  async result_types_are_the_documented_ones(server) {
    for (const result_type of ["execution_report", "clarification", "error_report", "unknown"]) {
      const say = event(`social-type-${result_type}`);
      await server.run(`social-type-${result_type}`, D, [say("RUN_STARTED"), say("TEXT_MESSAGE_END", answerOf({ result_type })), say("RUN_FINISHED")]);
      assert.equal(of(await server.frames(`social-type-${result_type}`, D), "TEXT_MESSAGE_END")[0].result_type, result_type);
    }
    assert.equal(of(await server.frames(await corpusRun(server, "loom"), D), "TEXT_MESSAGE_END")[0].result_type, "unknown");
  },

  async what_is_said_of_an_answer_stays(server) {
    const [answer] = of(await run(server), "TEXT_MESSAGE_END");
    assertHas(answer, answerOf());
  },

  async internal_figures_are_not_shown(server) {
    const say = event("social-figures");
    await server.run("social-figures", D, [
      say("RUN_STARTED", FIGURES),
      say("STEP_STARTED", { stepName: "worker", ...FIGURES }),
      say("TOOL_CALL_START", { ...callOf("c", "n"), ...FIGURES }),
      say("TOOL_CALL_END", { ...callOf("c", "n"), ...FIGURES }),
      say("TOOL_CALL_RESULT", { ...resultOf("c", "n"), ...FIGURES }),
      say("TEXT_MESSAGE_END", { ...answerOf(), ...FIGURES, usage: FIGURES }),
      say("CUSTOM", { name: "figures", value: 1, ...FIGURES }),
      say("BRAND_NEW", { ...FIGURES, usage: FIGURES, metadata: FIGURES }),
      say("RUN_FINISHED", { ...FIGURES, usage: [FIGURES] }),
    ]);
    for (const query of ["", "&fidelity=full"]) {
      for (const frame of await server.frames("social-figures", D, query)) {
        for (const name of Object.keys(FIGURES)) assert.deepEqual(places(frame, name), [], `${JSON.stringify(frame)}${query}`);
      }
    }
    const { events: stored } = await server.get("/api/v1/agent/runs/social-figures-thread/history");
    assert.ok(!JSON.stringify(stored).includes("secret-model"));
  },

  async figures_of_other_documents_are_not_shown(server) {
    const names = ["total_tokens", "prompt_tokens", "completion_tokens", "model_name", "response_latency", "latency_ms", "usage", "metrics"];
    for (const query of ["", "&fidelity=full"]) {
      await fromOtherDocuments(server, D, (frames, source) => {
        for (const frame of frames) {
          for (const name of names) assert.deepEqual(places(frame, name), [], `${source}${query}: ${JSON.stringify(frame)}`);
          assert.ok(!JSON.stringify(frame).includes("secret-model"), `${source}: ${JSON.stringify(frame)}`);
        }
      }, query);
    }
    await server.post("/v1/runs", { run_id: "social-input", thread_id: "social-input-thread", message: "q", input: { model: "secret-model", total_tokens: 7 } });
    await server.push("/v1/runs/social-input/events?dialect=agio", [{ type: "text_delta", data: { content: "x" } }, { type: "run_completed", data: { metrics: { total_tokens: 1 } } }]);
    assert.ok(!JSON.stringify(await server.frames("social-input", D)).includes("secret-model"), "the input of a run is not shown");
  },

  async business_data_stays(server) {
    const business = { model: "T-34", cost: 12, usage: { inputTokens: 3 } };
    const say = event("social-business");
    await server.run("social-business", D, [
      say("RUN_STARTED"),
      say("STATE_SNAPSHOT", { snapshot: business }),
      say("TOOL_CALL_START", callOf("c", "buy")),
      say("TOOL_CALL_ARGS", { ...callOf("c", "buy"), args: business }),
      say("TOOL_CALL_END", callOf("c", "buy")),
      say("TOOL_CALL_RESULT", resultOf("c", "buy", { tool_call_args: business, result: JSON.stringify(business) })),
      say("TEXT_MESSAGE_END", answerOf({ ui_schema: business })),
      say("RUN_FINISHED"),
    ]);
    const frames = await server.frames("social-business", D);
    assert.deepEqual(of(frames, "STATE_SNAPSHOT")[0].snapshot, business);
    assert.deepEqual(of(frames, "TOOL_CALL_ARGS")[0].args, business);
    assert.deepEqual(of(frames, "TOOL_CALL_RESULT")[0].tool_call_args, business);
    assert.deepEqual(JSON.parse(of(frames, "TOOL_CALL_RESULT")[0].result), business);
    assert.deepEqual(of(frames, "TEXT_MESSAGE_END")[0].ui_schema, business);
  },

  async thinking_is_not_shown_in_pieces(server) {
    await server.run("social-thought", "streaming-engine", [
      ...["a ", "long ", "thought"].map((content) => ({ type: "thinking", data: { content } })),
      { type: "content", data: { content: "x" } },
      { type: "session_end", data: { status: "completed" } },
    ]);
    const thinking = (await server.frames("social-thought", D)).filter(({ type, name }) => type === "CUSTOM" && name.includes("thinking"));
    assert.deepEqual(thinking.length, 1, JSON.stringify(thinking));
    assert.ok(JSON.stringify(thinking[0]).includes("a long thought"), JSON.stringify(thinking[0]));
  },

  async state_snapshots_pass(server) {
    const say = event("social-state");
    const snapshot = { cart: [1, null], model: "x" };
    await server.run("social-state", D, [say("RUN_STARTED"), say("STATE_SNAPSHOT", { snapshot }), say("RUN_FINISHED")]);
    assert.deepEqual(of(await server.frames("social-state", D), "STATE_SNAPSHOT").map((frame) => frame.snapshot), [snapshot]);
    const [loom] = of(await server.frames(await corpusRun(server, "loom"), D), "STATE_SNAPSHOT");
    assert.deepEqual(loom.snapshot, { city: "Beijing" });
  },

  async messages_snapshots_pass(server) {
    const say = event("social-messages");
    const messages = [{ id: "m1", role: "user", content: "hi" }, { id: "m2", role: "assistant", content: "hello" }];
    await server.run("social-messages", D, [say("RUN_STARTED"), say("MESSAGES_SNAPSHOT", { messages }), say("RUN_FINISHED")]);
    assert.deepEqual(of(await server.frames("social-messages", D), "MESSAGES_SNAPSHOT").map((frame) => frame.messages), [messages]);
  },

  async history_is_paged(server) {
    const frames = await run(server);
    const stored = [];
    for (let after = ""; after !== null; ) {
      const page = await server.get(`/api/v1/agent/runs/social-run-thread/history?limit=4${after && `&after=${after}`}`);
      assert.ok(page.events.length <= 4);
      stored.push(...page.events);
      after = page.next;
    }
    assert.deepEqual(stored, frames);
  },

  async every_event_names_type_thread_and_run(server) {
    await fromEveryDocument(server, D, (frames, source) => {
      for (const frame of frames) assertFields(frame, { type: "string", threadId: [`corpus-${source}-thread`], runId: [`corpus-${source}`] }, source);
    });
  },

  async some_names_keep_their_underscores(server) {
    const [result] = of(await run(server), "TOOL_CALL_RESULT");
    for (const name of ["tool_name", "tool_call_id", "tool_call_args"]) assert.ok(name in result, name);
    const [answer] = of(await run(server), "TEXT_MESSAGE_END");
    for (const name of ["ui_schema", "key_points", "result_type", "suggested_actions"]) assert.ok(name in answer, name);
    assert.ok(!("toolCallId" in result) && !("uiSchema" in answer));
  },

  async what_is_written_passes_the_check(server) {
    await fromEveryDocument(server, D, async (frames, source) => {
      const { code, stdout } = await server.command(["validate", "--dialect", D], framed(frames));
      assert.equal(code, 0, `${source}: ${stdout}`);
    });
  },
};
