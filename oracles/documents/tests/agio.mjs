// Agio's document, played by its JavaScript sample and by producers that are written from it alone.
import assert from "node:assert/strict";
import { ANSWER, CALLS, WORDS, corpusRun, fromEveryDocument, fromOtherDocuments, wordsInEveryDialect } from "../corpus.mjs";
import { assertFields, assertHas, events, shared, some, without } from "../client.mjs";

const D = "agio";
const EVENT = { type: "string", run_id: "string", timestamp: "string", data: "object", metadata: "object" };

/** The types whose data the document shows. */
const TYPES = {
  run_started: { query: "string" },
  text_delta: { content: "string", step: "number" },
  tool_call_started: { tool_name: "string", tool_call_id: "string", arguments: "object", step: "number" },
  tool_call_completed: { tool_name: "string", tool_call_id: "string", result: "any", duration: "number", step: "number" },
  usage_update: { prompt_tokens: "number", completion_tokens: "number", total_tokens: "number", step: "number" },
  run_completed: { response: "string", metrics: "object" },
  error: { error: "string", error_type: "string" },
};
const WITHOUT_SHAPE = ["run_failed", "run_cancelled", "step_started", "step_completed", "text_completed", "tool_call_failed", "metrics_snapshot", "warning", "debug"];

const event = (type, data, more = {}) => ({ type, run_id: "uuid-string", timestamp: "2025-11-20T18:00:00.000Z", data, metadata: {}, ...more });

/** Every type, in an order that an agent may send them. */
const EVERY_TYPE = [
  event("run_started", { query: "用户查询内容" }),
  event("step_started", { step: 1 }),
  event("text_delta", { content: "Hel", step: 1 }),
  event("text_delta", { content: "lo", step: 1 }),
  event("text_completed", { content: "Hello", step: 1 }),
  event("tool_call_started", { tool_name: "get_weather", tool_call_id: "call_123", arguments: { city: "Beijing", none: null }, step: 1 }),
  event("tool_call_completed", { tool_name: "get_weather", tool_call_id: "call_123", result: "The weather in Beijing is sunny", duration: 0.123, step: 1 }),
  event("tool_call_started", { tool_name: "get_tide", tool_call_id: "call_124", arguments: {}, step: 1 }),
  event("tool_call_failed", { tool_name: "get_tide", tool_call_id: "call_124", error: "no sea", error_type: "ValueError", duration: 0.5, step: 1 }),
  event("usage_update", { prompt_tokens: 100, completion_tokens: 50, total_tokens: 150, step: 1 }),
  event("metrics_snapshot", { total_tokens: 150, current_step: 1, tool_calls_count: 2, step_duration: 1.5 }),
  event("warning", { message: "slow" }),
  event("debug", { message: "prompt", tokens: [1, 2] }),
  event("error", { error: "错误信息", error_type: "ValueError", recoverable: true }),
  event("step_completed", { step: 1 }),
  event("run_completed", { response: "Hello", metrics: { duration: 5.14, steps_count: 1, tool_calls_count: 2, total_tokens: 150, response_latency: 1071 } }),
];

const everyType = shared(async (server) => {
  await server.run("agio-every", D, EVERY_TYPE);
  return server.frames("agio-every", D);
});
const of = (frames, type) => frames.filter((frame) => frame.type === type);

async function comesBack(server, type) {
  const came = of(await everyType(server), type).map(({ data }) => data);
  assert.deepEqual(came, of(EVERY_TYPE, type).map(({ data }) => data));
}

/** The client of the document: it reads lines, and shows what it knows. */
class Sample {
  text = "";
  tools = [];
  metrics = undefined;
  events = [];

  async read(response) {
    const decoder = new TextDecoder();
    let rest = "";
    for await (const value of response.body) {
      const lines = (rest + decoder.decode(value, { stream: true })).split("\n");
      rest = lines.pop();
      for (const line of lines) if (line.startsWith("data: ")) this.handleEvent(JSON.parse(line.slice(6)));
    }
    return this;
  }

  handleEvent(event) {
    this.events.push(event);
    switch (event.type) {
      case "text_delta":
        this.text += event.data.content;
        break;
      case "tool_call_started":
        this.tools.push(event.data.tool_name);
        break;
      case "run_completed":
        this.metrics = event.data.metrics;
        break;
    }
  }
}

const stream = (server, body, path = "/api/agent/stream") => server.post(path, body);
const asSample = async (server, body) => new Sample().read(await stream(server, body));

export const tests = {
  ...Object.fromEntries(
    ["step_started", "step_completed", "text_delta", "tool_call_started", "tool_call_completed", "usage_update", "metrics_snapshot", "error", "warning"].map((type) => [`type_${type}`, (server) => comesBack(server, type)]),
  ),

  async type_tool_call_failed(server) {
    await comesBack(server, "tool_call_failed");
    await fromOtherDocuments(server, D, (frames, source) => {
      const [failed] = of(frames, "tool_call_failed");
      assertHas(failed?.data, { tool_name: "get_tide", tool_call_id: "c2", error: "no sea here" }, source);
    });
  },

  async history_is_what_was_streamed(server) {
    const { events: seen } = await asSample(server, { query: "hi" });
    const history = await server.get(`/api/runs/${seen[0].run_id}/events?limit=1000`);
    assert.deepEqual(history.events, seen);
  },

  async every_event_has_the_same_structure(server) {
    await fromEveryDocument(server, D, (frames, source) => {
      for (const frame of frames) {
        assertFields(frame, EVENT, source);
        assert.deepEqual(Object.keys(frame), Object.keys(EVENT), source);
      }
    });
  },

  async every_event_names_its_run(server) {
    await fromEveryDocument(server, D, (frames, source) => {
      assert.deepEqual([...new Set(frames.map(({ run_id }) => run_id))], [`corpus-${source}`]);
    });
  },

  async timestamps_are_iso_8601(server) {
    await fromEveryDocument(server, D, (frames, source) => {
      for (const { timestamp } of frames) assert.match(timestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/, source);
    });
    assert.equal((await everyType(server))[0].timestamp, "2025-11-20T18:00:00.000Z");
  },

  async metadata_may_be_left_out(server) {
    await server.run("agio-no-metadata", D, EVERY_TYPE.map((each) => without(each, "metadata")));
    for (const { metadata } of await server.frames("agio-no-metadata", D)) assertFields({ metadata }, { metadata: "object" }, "metadata");
  },

  async a_run_begins_with_run_started(server) {
    await fromEveryDocument(server, D, (frames, source) => {
      assert.equal(frames[0].type, "run_started", source);
      assert.equal(of(frames, "run_started").length, 1, source);
    });
  },

  async a_run_that_succeeded_ends_with_run_completed(server) {
    await fromEveryDocument(server, D, (frames, source) => {
      assert.equal(frames.at(-1).type, "run_completed", source);
      assertFields(frames.at(-1).data, TYPES.run_completed, source);
    });
  },

  async a_run_that_failed_ends_with_run_failed(server) {
    await server.run("agio-failed-loom", "loom", [{ type: "run_start" }, { reply: "", stop_reason: "error", error: "broke" }]);
    await server.run("agio-failed-social", "social-app", [{ type: "RUN_STARTED", threadId: "t", runId: "r" }, { type: "RUN_ERROR", threadId: "t", runId: "r", message: "broke", code: null }]);
    for (const run of ["agio-failed-loom", "agio-failed-social"]) {
      const [error, failed] = (await server.frames(run, D)).slice(-2);
      assert.deepEqual([error.type, failed.type], ["error", "run_failed"], run);
      assert.equal(error.data.error, "broke", run);
    }
    const { events: seen } = await asSample(server, { query: "fail" });
    assert.deepEqual(seen.slice(-2).map(({ type, data }) => [type, data.error, data.error_type]), [["error", "错误信息", "ValueError"], ["run_failed", "错误信息", "ValueError"]]);
  },

  async a_run_that_was_cancelled_ends_with_run_cancelled(server) {
    const sample = new Sample();
    await events(await stream(server, { query: "go", agent: "endless" }), async (frame) => {
      sample.handleEvent(frame);
      if (frame.type === "text_delta" && !sample.asked) {
        sample.asked = true;
        await server.post(`/v1/runs/${frame.run_id}/cancel`, {});
      }
    });
    assert.equal(sample.events.at(-1).type, "run_cancelled");
  },

  async a_text_ends_with_text_completed(server) {
    await comesBack(server, "text_completed");
    await fromOtherDocuments(server, D, (frames, source) => {
      const texts = of(frames, "text_completed").map(({ data }) => data.content);
      assert.deepEqual(texts, [ANSWER], source);
    });
  },

  async debug_comes_in_debug_mode_only(server) {
    const sample = await asSample(server, { query: "hi", agent: "loom" });
    assert.equal(sample.text, "你好，世界");
    assert.deepEqual(of(sample.events, "debug"), [], "nothing but questions comes as debug");
    for (const source of ["loom", "streaming-engine", "easyflow-chat"]) {
      const { events: stored } = await server.get(`/api/runs/${await corpusRun(server, source)}/events?limit=1000`);
      assert.deepEqual(of(stored, "debug"), [], source);
    }
    const asking = [];
    await events(await stream(server, { query: "approve", agent: "loom" }), async (frame) => {
      asking.push(frame);
      const asked = frame.type === "debug" ? frame.data.runwire : undefined;
      if (asked?.type === "interaction.requested") await server.post(`/v1/runs/${frame.run_id}/interactions/${asked.interaction_id}`, { decision: "approved" });
    });
    assert.ok(of(asking, "debug").some(({ data }) => data.runwire.type === "interaction.requested"), "a question is seen");
    assert.equal(asking.at(-1).type, "run_completed");
  },

  async run_started_has_the_query(server) {
    const { events: [start] } = await asSample(server, { query: "用户查询内容" });
    assert.equal(start.data.query, "用户查询内容");
    const [loom] = await server.frames(await corpusRun(server, "loom"), D);
    assert.equal(loom.data.query, "weather?");
  },

  async text_delta_has_content_and_step(server) {
    await fromEveryDocument(server, D, (frames, source) => {
      for (const { data } of some(frames, ({ type }) => type === "text_delta", source)) assertFields(data, TYPES.text_delta, source);
    });
  },

  async appending_deltas_gives_the_answer(server) {
    await fromEveryDocument(server, D, (frames, source) => assert.equal(WORDS[D](frames), ANSWER, source));
  },

  async tool_call_started_has_its_fields(server) {
    await fromEveryDocument(server, D, (frames, source) => {
      const calls = of(frames, "tool_call_started").map(({ data }) => data);
      for (const data of calls) assertFields(data, TYPES.tool_call_started, source);
      assert.deepEqual(calls.map(({ tool_call_id, tool_name, arguments: given }) => [tool_call_id, tool_name, given]), CALLS.map(({ id, name, arguments: given }) => [id, name, given]), source);
    });
  },

  async tool_call_completed_has_its_fields(server) {
    await fromEveryDocument(server, D, (frames, source) => {
      for (const { data } of some(frames, ({ type }) => type === "tool_call_completed", source)) assertFields(data, TYPES.tool_call_completed, source);
    });
  },

  async results_keep_their_kind(server) {
    const result = async (source) => of(await server.frames(await corpusRun(server, source), D), "tool_call_completed")[0].data.result;
    for (const source of ["loom", "agio", "social-app"]) assert.equal(await result(source), "晴，21°C", source);
    for (const source of ["streaming-engine", "easyflow-chat"]) {
      const told = await result(source);
      assert.deepEqual(typeof told === "string" ? JSON.parse(told) : told, { temperature: 21, sky: "晴" }, source);
    }
    await server.run("agio-list", D, [event("tool_call_started", { tool_name: "n", tool_call_id: "c", arguments: {} }), event("tool_call_completed", { tool_name: "n", tool_call_id: "c", result: [1, null], duration: 1 })]);
    assert.deepEqual(of(await server.frames("agio-list", D), "tool_call_completed")[0].data.result, [1, null]);
  },

  async durations_are_seconds(server) {
    const frames = await server.frames(await corpusRun(server, "streaming-engine"), D);
    assert.equal(of(frames, "tool_call_completed")[0].data.duration, 0.15);
    assert.equal(frames.at(-1).data.metrics.duration, 3);
  },

  async usage_update_has_its_fields(server) {
    for (const source of ["loom", "agio"]) {
      const [usage] = of(await server.frames(await corpusRun(server, source), D), "usage_update");
      assertHas(usage.data, { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120, step: 1 }, source);
    }
  },

  async the_response_is_the_whole_answer(server) {
    await fromEveryDocument(server, D, (frames, source) => assert.equal(frames.at(-1).data.response, ANSWER, source));
  },

  async a_response_that_was_not_streamed_is_seen(server) {
    const cases = {
      alone: [[], "the whole answer"],
      rest: [[event("text_delta", { content: "the whole", step: 1 })], "the whole answer"],
      same: [[event("text_delta", { content: "the whole ", step: 1 }), event("text_delta", { content: "answer", step: 1 })], "the whole answer"],
    };
    for (const [name, [before, response]] of Object.entries(cases)) {
      await server.run(`agio-whole-${name}`, D, [event("run_started", { query: "q" }), ...before, event("run_completed", { response, metrics: {} })]);
      const words = await wordsInEveryDialect(server, `agio-whole-${name}`, ["loom"]);
      assert.deepEqual(words, Object.fromEntries(Object.keys(words).map((dialect) => [dialect, response])), name);
      assert.equal((await server.frames(`agio-whole-${name}`, "loom")).at(-1).reply, response, name);
    }
  },

  async metrics_have_their_fields(server) {
    assert.deepEqual((await everyType(server)).at(-1).data.metrics, EVERY_TYPE.at(-1).data.metrics);
    await fromOtherDocuments(server, D, (frames, source) => {
      assertFields(frames.at(-1).data.metrics, { duration: "number", steps_count: "number", tool_calls_count: [2], "total_tokens?": [120] }, source);
    });
  },

  async error_has_its_fields(server) {
    await comesBack(server, "error");
    const frames = await server.frames(await corpusRun(server, "easyflow-chat"), D);
    const told = frames.find(({ type, data }) => ["error", "warning"].includes(type) && JSON.stringify(data).includes("配额不足"));
    assertFields(told?.data, TYPES.error, "a business error");
  },

  async the_examples_are_accepted(server) {
    const id = "agio-examples";
    const examples = [
      event("run_started", { query: "用户查询内容" }),
      event("text_delta", { content: "Hello", step: 1 }, { timestamp: "2025-11-20T18:00:01.123Z" }),
      event("tool_call_started", { tool_name: "get_weather", tool_call_id: "call_123", arguments: { city: "Beijing" }, step: 1 }),
      event("tool_call_completed", { tool_name: "get_weather", tool_call_id: "call_123", result: "The weather in Beijing is sunny", duration: 0.123, step: 1 }),
      event("usage_update", { prompt_tokens: 100, completion_tokens: 50, total_tokens: 150, step: 1 }),
      event("error", { error: "错误信息", error_type: "ValueError" }),
      event("run_completed", { response: "完整的响应文本", metrics: { duration: 5.14, steps_count: 2, tool_calls_count: 2, total_tokens: 360, response_latency: 1071 } }),
    ];
    const { accepted } = await server.push(`/v1/runs/${id}/events`, examples);
    assert.equal(accepted, examples.length);
    const frames = await server.frames(id, D);
    for (const example of examples) {
      const same = of(frames, example.type)[0];
      assert.deepEqual([same?.data, same?.timestamp], [example.data, example.timestamp], example.type);
    }
  },

  async the_javascript_sample_works(server) {
    const response = await stream(server, { query: "hi" });
    assert.deepEqual([response.status, response.headers.get("content-type")], [200, "text/event-stream"]);
    const { text, tools, metrics } = await new Sample().read(response);
    assert.deepEqual([text, tools, metrics.duration], ["Hello, 你好", ["get_weather"], 5.14]);
  },

  async lines_begin_with_data(server) {
    const lines = (await (await stream(server, { query: "hi" })).text()).split("\n");
    const data = lines.filter((line) => line.startsWith("data: "));
    assert.ok(data.length > 5);
    for (const line of data) assertFields(JSON.parse(line.slice(6)), EVENT, "a line");
  },

  async the_sample_shows_runs_of_every_document(server) {
    await fromEveryDocument(server, D, (frames, source) => {
      const sample = new Sample();
      for (const frame of frames) sample.handleEvent(frame);
      assert.deepEqual([sample.text, sample.tools], [ANSWER, ["get_weather", "get_tide"]], source);
      assertFields(sample.metrics, { duration: "number", tool_calls_count: "number" }, source);
    });
  },

  async an_event_is_one_data_line_and_a_blank_line(server) {
    for (const { text, frame } of await events(await stream(server, { query: "line\nbreak" }))) {
      assert.equal(text.split("\n").filter((line) => line.startsWith("data:")).length, 1, text);
      assertFields(frame, EVENT, "an event");
    }
  },

  async the_fastapi_sample_takes_a_parameter(server) {
    const response = await server.request(`/agent/stream?query=${encodeURIComponent("你好 & bye")}`, { method: "POST" });
    const { events: [start], text } = await new Sample().read(response);
    assert.deepEqual([start.data.query, text], ["你好 & bye", "Hello, 你好"]);
  },

  async a_back_end_of_the_document_is_an_agent(server) {
    for (const agent of ["agio", "agio-query"]) {
      const { text, events: seen } = await asSample(server, { query: "hi & bye", agent });
      assert.deepEqual([text, seen[0].data.query, seen.at(-1).data.response], ["Hello, 你好", "hi & bye", "Hello, 你好"], agent);
    }
  },

  async a_run_is_replayed_by_its_id(server) {
    const sent = await everyType(server);
    const stored = [];
    for (let offset = 0; offset !== null; ) {
      const page = await server.get(`/api/runs/agio-every/events?offset=${offset}&limit=5`);
      stored.push(...page.events);
      offset = page.next_offset;
    }
    assert.deepEqual(stored.filter(({ data }) => !data.runwire), sent.filter(({ data }) => !data.runwire));
    const live = await new Sample().read(await server.request("/api/runs/agio-every/events", { headers: { Accept: "text/event-stream" } }));
    assert.deepEqual(live.events, stored);
  },

  async history_of_a_live_run_tells_how_to_go_on(server) {
    await server.push("/v1/runs/agio-live/events?dialect=agio", EVERY_TYPE.slice(0, 4));
    const first = await server.get("/api/runs/agio-live/events");
    assert.deepEqual([first.events.length, first.next_offset], [4, 4]);
    await server.push("/v1/runs/agio-live/events?dialect=agio", EVERY_TYPE.slice(4));
    const rest = await server.get(`/api/runs/agio-live/events?offset=${first.next_offset}`);
    assert.deepEqual([rest.events[0].type, rest.events.at(-1).type, rest.next_offset], ["text_completed", "run_completed", null]);
  },

  async timestamps_never_go_back(server) {
    await fromEveryDocument(server, D, (frames, source) => {
      const sorted = [...frames].sort((one, other) => Date.parse(one.timestamp) - Date.parse(other.timestamp));
      assert.deepEqual(sorted, frames, source);
    });
  },

  async nothing_comes_after_the_end(server) {
    await everyType(server);
    const { status, answer } = await server.write("/v1/runs/agio-every/events?dialect=agio", [event("text_delta", { content: "late", step: 1 })]);
    assert.deepEqual([status, answer.code], [409, "run_closed"]);
    assert.equal((await server.frames("agio-every", D)).at(-1).type, "run_completed");
  },

  async a_client_comes_back_and_misses_nothing(server) {
    await everyType(server);
    const path = "/api/runs/agio-every/events";
    const all = await events(await server.request(path, { headers: { Accept: "text/event-stream" } }));
    for (const at of [0, 5, all.length - 2]) {
      const rest = await events(await server.request(path, { headers: { Accept: "text/event-stream", "Last-Event-ID": all[at].id } }));
      assert.deepEqual(rest.map(({ frame }) => frame), all.slice(at + 1).map(({ frame }) => frame));
    }
  },

  async deltas_can_be_merged(server) {
    const pieces = Array.from({ length: 50 }, (_, at) => event("text_delta", { content: `${at} `, step: 1 }));
    await server.run("agio-merge", D, [event("run_started", { query: "q" }), ...pieces]);
    const merged = await server.frames("agio-merge", D, "&compact=true");
    assert.equal(WORDS[D](merged), pieces.map(({ data }) => data.content).join(""));
    assert.ok(of(merged, "text_delta").length < 5, `${of(merged, "text_delta").length} pieces`);
  },

  async history_is_paged(server) {
    await everyType(server);
    const page = await server.get("/api/runs/agio-every/events?offset=2&limit=3");
    assert.deepEqual(page.events.map(({ type }) => type), ["text_delta", "text_delta", "text_completed"]);
    assert.equal(page.next_offset, 5);
  },

  async debug_events_can_be_asked_for(server) {
    await comesBack(server, "debug");
    const run = await corpusRun(server, "loom");
    const slots = (query) => server.frames(run, D, query).then((frames) => of(frames, "debug").length);
    assert.ok((await slots("&slots=all")) > 0);
    assert.equal(await slots("&slots=none"), 0);
  },

  async all_events_can_be_written_to_a_terminal(server) {
    const frames = await everyType(server);
    const { stdout } = await server.command(["tail", "agio-every", "--dialect", "agio", "-o", "ndjson"]);
    assert.deepEqual(stdout.trimEnd().split("\n").map((line) => JSON.parse(line)), frames);
  },

  async metadata_comes_back(server) {
    const metadata = { trace: "abc", nested: { list: [1, null] } };
    await server.run("agio-metadata", D, [event("run_started", { query: "q" }, { metadata }), event("text_delta", { content: "x", step: 1 }, { metadata })]);
    for (const frame of await server.frames("agio-metadata", D)) assertHas(frame.metadata, metadata, frame.type);
  },

  async new_types_pass(server) {
    const invented = event("weather_report", { sky: "blue" });
    await server.run("agio-new-type", D, [event("run_started", { query: "q" }), invented]);
    const [, came] = await server.frames("agio-new-type", D);
    assert.deepEqual([came.type, came.data], [invented.type, invented.data]);
  },

  async data_takes_any_json(server) {
    const data = { content: "x", step: 1, list: [1, { deep: null }], flag: true, text: "…" };
    await server.run("agio-any-data", D, [event("run_started", { query: "q", more: { a: [null] } }), event("text_delta", data)]);
    const [start, delta] = await server.frames("agio-any-data", D);
    assert.deepEqual([start.data, delta.data], [{ query: "q", more: { a: [null] } }, data]);
  },

  async metadata_of_new_types_comes_back(server) {
    const metadata = { trace: "abc", list: [1] };
    await server.run("agio-new-metadata", D, [event("run_started", { query: "q" }), event("weather_report", { sky: "blue" }, { metadata })]);
    const [, came] = await server.frames("agio-new-metadata", D);
    assertHas(came.metadata, metadata);
    await server.run("se-new-metadata", "streaming-engine", [{ type: "weather", data: { sky: "blue" }, metadata: { request_id: "r", timestamp: 1763300000000, sequence: 0, trace: "abc" } }]);
    const told = (await server.frames("se-new-metadata", "streaming-engine")).find(({ type }) => type === "weather");
    assert.equal(told.metadata.trace, "abc");
  },
};
