// StreamingEngine's document, played by an engine and a front end that are written from it alone.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { ANSWER, CALLS, WORDS, corpusRun, fromEveryDocument, fromOtherDocuments, wordsInEveryDialect } from "../corpus.mjs";
import { ROOT } from "../checklist.mjs";
import { assertFields, assertHas, events, shared, some } from "../client.mjs";

const D = "streaming-engine";
const isError = (error) => error === undefined || (typeof error.message === "string" && ["string", "undefined"].includes(typeof error.code));

/** §1.1 and §1.3: the data of each type. */
const TYPES = {
  session_start: { session_id: "string", request_id: "string" },
  thinking: { content: "string", "stage?": ["reasoning", "planning", "analyzing"] },
  tool_call_start: { tool_id: "string", tool_name: "string", "description?": "string", arguments: "object" },
  tool_call_progress: { tool_id: "string", "progress?": "number", "message?": "string" },
  tool_call_end: { tool_id: "string", status: ["success", "failed"], "result?": "object", "error?": isError },
  content: { content: "string", "format?": ["markdown", "text", "html"], "is_complete?": "boolean" },
  data: { data_type: ["dataframe", "chart", "image", "custom"], data: "any", "metadata?": "object" },
  error: { error_type: ["validation", "execution", "timeout", "system"], message: "string", "details?": "object", recoverable: "boolean" },
  session_end: { status: ["completed", "error", "cancelled"], "summary?": "object" },
};

/** The engine of §2: it numbers and dates what it sends. */
function engine(request_id, unit = 1) {
  let sequence = 0;
  return (type, data, metadata = {}) => ({ type, data, metadata: { request_id, timestamp: Math.floor(1763300000000 / unit), sequence: sequence++, ...metadata } });
}

const SESSION = (id) => {
  const emit = engine(`req_${id}`);
  return [
    emit("session_start", { session_id: `sess_${id}`, request_id: `req_${id}` }),
    emit("thinking", { content: "思考内容", stage: "reasoning" }),
    emit("thinking", { content: "片段", stage: "planning" }),
    emit("thinking", { content: "。", stage: "analyzing" }),
    emit("tool_call_start", { tool_id: "tool_1", tool_name: "display_table", description: "展示表格数据", arguments: { table_name: "销售数据", columns: ["产品", "销量"] } }),
    emit("tool_call_progress", { tool_id: "tool_1", progress: 40, message: "正在查询" }),
    emit("data", { data_type: "dataframe", data: { name: "销售数据", columns: ["产品", "销量"], rows: [["茶", 3]] }, metadata: { description: "数据描述" } }),
    emit("tool_call_end", { tool_id: "tool_1", status: "success", result: { rows: 1, none: null } }, { duration_ms: 150 }),
    emit("tool_call_start", { tool_id: "tool_2", tool_name: "plot", description: "画图", arguments: {} }),
    emit("tool_call_end", { tool_id: "tool_2", status: "failed", error: { message: "错误信息", code: "ERROR_CODE" } }, { duration_ms: 20 }),
    emit("data", { data_type: "chart", data: { kind: "bar" } }),
    emit("data", { data_type: "image", data: { url: "data:," } }),
    emit("data", { data_type: "custom", data: { any: 1 } }),
    emit("error", { error_type: "timeout", message: "慢", details: { stack_trace: "…", context: {} }, recoverable: true }),
    emit("content", { content: "最终答案", format: "html", is_complete: false }),
    emit("content", { content: "内容片段", format: "html", is_complete: true }),
    emit("session_end", { status: "completed", summary: { total_tokens: 1500, duration_ms: 3000, tool_calls: 2 } }),
  ];
};

const session = shared(async (server) => {
  await server.run("se-session", D, SESSION("main"));
  return server.frames("se-session", D);
});

const of = (frames, type) => frames.filter((frame) => frame.type === type);

async function comesBack(server, type) {
  const came = of(await session(server), type).map(({ data }) => data);
  assert.deepEqual(came, of(SESSION("main"), type).map(({ data }) => data));
}

/** §3: the message state, and the handler that gathers it. What its switch does not know, it ignores. */
class DocumentHandler {
  message = { thinkingContent: "", mainContent: "", toolCalls: [], dataBlocks: [], isStreaming: false, hasError: false, metadata: {} };

  handleEvent({ type, data, metadata }) {
    const { message } = this;
    const call = () => message.toolCalls.find(({ id }) => id === data.tool_id);
    switch (type) {
      case "session_start":
        message.isStreaming = true;
        message.metadata = { requestId: data.request_id, startTime: metadata.timestamp };
        break;
      case "thinking":
        message.thinkingContent += data.content;
        break;
      case "tool_call_start":
        message.toolCalls.push({ id: data.tool_id, name: data.tool_name, arguments: data.arguments });
        break;
      case "tool_call_end":
        Object.assign(call(), { failed: data.status === "failed", result: data.result, error: data.error });
        break;
      case "content":
        message.mainContent += data.content;
        break;
      case "data":
        message.dataBlocks.push({ type: data.data_type, data: data.data });
        break;
      case "error":
        if (data.recoverable) break;
        message.hasError = true;
        message.errorMessage = data.message;
        break;
      case "session_end":
        message.isStreaming = false;
        message.metadata.endTime = metadata.timestamp;
        break;
    }
  }
}

/** Makes the TypeScript SDK's handler, and feeds it. */
async function sdkHandler(...frames) {
  const { MessageStreamHandler } = await import(path.join(ROOT, "sdk/typescript/dist/index.js")).catch((error) => {
    throw new Error(`build the SDK first (npm ci && npm run build in sdk/typescript): ${error.message}`);
  });
  const handler = new MessageStreamHandler();
  for (const frame of frames) handler.handleEvent(frame);
  return handler;
}

/** Looks at the message state of the server, and at that of the SDK. */
async function inBothStates(server, look) {
  const frames = await session(server);
  look(await server.get("/v1/runs/se-session/message"));
  look((await sdkHandler(...frames)).message);
}

/** Writes older events, and reads them in the new form. */
async function legacy(server, name, frames) {
  await server.push(`/v1/runs/se-legacy-${name}/events?dialect=${D}`, frames);
  return (await server.frames(`se-legacy-${name}`, D)).filter(({ type }) => type !== "runwire");
}

const strictly = (server, name, frames) => server.write(`/v1/runs/se-strict-${name}/events?dialect=${D}&strict=true`, frames);

export const tests = {
  async a_request_begins_with_session_start(server) {
    await fromEveryDocument(server, D, (frames, source) => {
      assert.equal(frames[0].type, "session_start", source);
      assert.equal(of(frames, "session_start").length, 1, source);
    });
  },

  async reasoning_is_thinking(server) {
    assert.deepEqual(of(await session(server), "thinking").map(({ data }) => data.content), ["思考内容", "片段", "。"]);
    for (const source of ["loom", "easyflow-chat"]) {
      const frames = await server.frames(await corpusRun(server, source), D);
      assert.equal(of(frames, "thinking").map(({ data }) => data.content).join(""), "let me see", source);
    }
  },

  async a_call_starts_before_it_ends(server) {
    await fromEveryDocument(server, D, (frames, source) => {
      for (const { id, name } of CALLS) {
        const own = frames.filter(({ type, data }) => type.startsWith("tool_call_") && data.tool_id === id).map(({ type }) => type);
        assert.deepEqual([own[0], own.at(-1)], ["tool_call_start", "tool_call_end"], `${source} ${name}`);
        assert.equal(own.filter((type) => type === "tool_call_end").length, 1, `${source} ${name}`);
      }
    });
  },

  type_tool_call_progress: (server) => comesBack(server, "tool_call_progress"),
  type_thinking: (server) => comesBack(server, "thinking"),
  type_data: (server) => comesBack(server, "data"),
  type_error: (server) => comesBack(server, "error"),
  type_tool_call_start: (server) => comesBack(server, "tool_call_start"),

  async the_answer_is_content(server) {
    await fromEveryDocument(server, D, (frames, source) => assert.equal(WORDS[D](frames), ANSWER, source));
  },

  async a_request_ends_with_session_end(server) {
    await fromEveryDocument(server, D, (frames, source) => {
      assert.equal(frames.at(-1).type, "session_end", source);
      assert.equal(of(frames, "session_end").length, 1, source);
    });
  },

  async every_event_has_type_data_and_metadata(server) {
    await fromEveryDocument(server, D, (frames, source) => {
      for (const frame of frames) assertFields(frame, { type: "string", data: "object", metadata: "object" }, source);
    });
  },

  async metadata_names_the_request(server) {
    await fromEveryDocument(server, D, (frames, source) => {
      const [{ data }] = frames;
      for (const { metadata } of frames) assert.equal(metadata.request_id, data.request_id, source);
    });
  },

  async timestamps_have_one_unit(server) {
    const isMilliseconds = (time) => Number.isInteger(time) && time > 1e12 && time < 1e14;
    for (const [unit, name] of [[1000, "seconds"], [1, "milliseconds"]]) {
      const emit = engine(`req_${name}`, unit);
      const body = [emit("session_start", { session_id: "s", request_id: `req_${name}` }), emit("content", { content: "x" })];
      await server.push(`/v1/runs/se-time-${name}/events?dialect=${D}`, body);
      // The end is the server's own.
      await server.post(`/v1/runs/se-time-${name}/cancel`, {});
      await server.push(`/v1/runs/se-time-${name}/events?dialect=${D}`, [emit("session_end", { status: "cancelled" })]);
      const frames = await server.frames(`se-time-${name}`, D);
      const times = frames.map(({ metadata }) => metadata.timestamp);
      assert.ok(times.every(isMilliseconds), `from ${name}: ${times}`);
      assert.equal(times[0], 1763300000000, `from ${name}`);
      const { metadata } = await server.get(`/v1/runs/se-time-${name}/message`);
      assert.ok(isMilliseconds(metadata.startTime) && isMilliseconds(metadata.endTime), JSON.stringify(metadata));
      const ours = (await sdkHandler(...body)).message.metadata.startTime;
      assert.ok(isMilliseconds(ours), `the handler has ${ours} from ${name}`);
    }
  },

  async sequences_have_no_gap(server) {
    await fromEveryDocument(server, D, (frames, source) => {
      assert.deepEqual(frames.map(({ metadata }) => metadata.sequence), frames.map((_, at) => at), source);
    });
  },

  async runs_of_other_dialects_become_documented_events(server) {
    await fromOtherDocuments(server, D, (frames, source) => {
      for (const { type, data } of frames) if (type !== "runwire") assertFields(data, { ...TYPES[type] }, `${source} ${type}`);
      const known = frames.filter(({ type }) => type !== "runwire").map(({ type }) => type);
      assert.deepEqual(known.filter((type) => !(type in TYPES)), [], source);
    });
  },

  async type_session_start(server) {
    const [start] = await session(server);
    assert.deepEqual([start.data.request_id, start.metadata.sequence], [start.metadata.request_id, 0]);
    assertFields(start.data, TYPES.session_start, "session_start");
    await server.push(`/v1/threads/sess_named/events?dialect=${D}`, SESSION("named").map((frame) => (frame.type === "session_start" ? { ...frame, data: { ...frame.data, session_id: "sess_named" } } : frame)));
    const [named] = await server.frames("req_named", D);
    assert.deepEqual(named.data, { session_id: "sess_named", request_id: "req_named" });
  },

  async stages_are_the_documented_ones(server) {
    assert.deepEqual(of(await session(server), "thinking").map(({ data }) => data.stage), ["reasoning", "planning", "analyzing"]);
    await server.run("se-stage", D, [engine("r")("thinking", { content: "x", stage: "dreaming" }), engine("r")("thinking", { content: "y" })]);
    for (const { data } of of(await server.frames("se-stage", D), "thinking")) assertFields(data, TYPES.thinking, "thinking");
  },

  async descriptions_are_kept(server) {
    assert.equal(of(await session(server), "tool_call_start")[0].data.description, "展示表格数据");
  },

  async type_tool_call_end(server) {
    await comesBack(server, "tool_call_end");
    await fromEveryDocument(server, D, (frames, source) => {
      assert.deepEqual(of(frames, "tool_call_end").map(({ data }) => data.status), ["success", "failed"], source);
    });
  },

  async results_are_objects(server) {
    await fromEveryDocument(server, D, (frames, source) => {
      for (const { data } of of(frames, "tool_call_end")) assertFields(data, { "result?": "object" }, source);
    });
    const frames = await server.frames(await corpusRun(server, "loom"), D);
    assert.deepEqual(of(frames, "tool_call_end")[0].data.result, { value: "晴，21°C" });
    const back = await server.frames(await corpusRun(server, "easyflow-chat"), D);
    assert.deepEqual(of(back, "tool_call_end")[0].data.result, { temperature: 21, sky: "晴" });
  },

  async errors_of_calls_stand_only_where_they_failed(server) {
    await fromEveryDocument(server, D, (frames, source) => {
      const [good, bad] = of(frames, "tool_call_end").map(({ data }) => data);
      assert.equal(good.error, undefined, source);
      assert.equal(bad.error?.message, "no sea here", source);
    });
    assert.deepEqual(of(await session(server), "tool_call_end")[1].data.error, { message: "错误信息", code: "ERROR_CODE" });
  },

  async durations_are_kept(server) {
    assert.deepEqual(of(await session(server), "tool_call_end").map(({ metadata }) => metadata.duration_ms), [150, 20]);
    const frames = await server.frames(await corpusRun(server, "agio"), D);
    assert.equal(of(frames, "tool_call_end")[0].metadata.duration_ms, 123);
  },

  async formats_are_kept(server) {
    const pieces = of(await session(server), "content").filter(({ data }) => data.content !== "");
    assert.deepEqual(pieces.map(({ data }) => data.format), ["html", "html"]);
  },

  async no_format_is_markdown(server) {
    await server.run("se-no-format", D, [{ type: "content", data: { content: "*x*" } }, { type: "session_end", data: { status: "completed" } }]);
    for (const { data } of some(await server.frames("se-no-format", D), ({ type }) => type === "content", "content")) assertFields(data, { "format?": ["markdown"] }, "content");
  },

  async the_last_piece_is_complete(server) {
    const contents = of(await session(server), "content").map(({ data }) => data);
    assert.deepEqual(contents, of(SESSION("main"), "content").map(({ data }) => data), "an engine's own last piece stays one event");
    const emit = engine("req_pieces");
    await server.run("se-pieces", D, [
      emit("session_start", { session_id: "s", request_id: "req_pieces" }),
      emit("content", { content: "before", format: "text" }),
      emit("tool_call_start", { tool_id: "t", tool_name: "n", description: "d", arguments: {} }),
      emit("tool_call_end", { tool_id: "t", status: "success" }),
      emit("content", { content: "after", format: "text" }),
      emit("session_end", { status: "completed" }),
    ]);
    const runs = { "se-pieces": await server.frames("se-pieces", D) };
    await fromOtherDocuments(server, D, (frames, source) => (runs[source] = frames));
    for (const [source, frames] of Object.entries(runs)) {
      const pieces = of(frames, "content").map(({ data }) => data);
      assert.deepEqual(pieces.map(({ is_complete }) => is_complete === true), pieces.map((_, at) => at === pieces.length - 1), `${source}: ${JSON.stringify(pieces)}`);
    }
    assert.equal(of(runs["se-pieces"], "content").at(-1).data.format, "text");
    // An engine that completes every message is shown the first time only; an empty last piece is shown too.
    const again = engine("req_again");
    await server.run("se-again", D, [
      again("session_start", { session_id: "s", request_id: "req_again" }),
      ...["one", "two", "three"].map((content) => again("content", { content, format: "text", is_complete: true })),
      again("session_end", { status: "completed" }),
    ]);
    const repeated = of(await server.frames("se-again", D), "content").map(({ data }) => data);
    assert.deepEqual(repeated.filter(({ is_complete }) => is_complete === true).map(({ content }) => content), ["one"]);
    assert.equal(repeated.map(({ content }) => content).join(""), "onetwothree");
    const empty = engine("req_empty");
    await server.run("se-empty", D, [
      empty("session_start", { session_id: "s", request_id: "req_empty" }),
      empty("content", { content: "", format: "text", is_complete: true }),
      empty("session_end", { status: "completed" }),
    ]);
    assert.deepEqual(of(await server.frames("se-empty", D), "content").map(({ data }) => data), [{ content: "", format: "text", is_complete: true }]);
  },

  async data_types_are_the_documented_ones(server) {
    assert.deepEqual(of(await session(server), "data").map(({ data }) => data.data_type), ["dataframe", "chart", "image", "custom"]);
    await server.run("se-data-type", "runwire", [{ type: "data", data_type: "map", data: { lat: 1 } }]);
    const [{ data }] = of(await server.frames("se-data-type", D), "data");
    assert.equal(data.data_type, "custom");
  },

  async error_types_are_the_documented_ones(server) {
    await server.run("se-error-type", "agio", [{ type: "error", data: { error: "e", error_type: "ValueError" } }, { type: "run_failed", data: { error: "e", error_type: "ValueError" } }]);
    const errors = of(await server.frames("se-error-type", D), "error");
    assert.equal(errors.length, 1);
    assertFields(errors[0].data, TYPES.error, "error");
    assert.equal(errors[0].data.message, "e");
  },

  async a_recoverable_error_ends_nothing(server) {
    const frames = await session(server);
    const at = frames.findIndex(({ type }) => type === "error");
    assert.equal(frames[at].data.recoverable, true);
    assert.equal(frames.at(-1).data.status, "completed");
    assert.ok(frames.slice(at).some(({ type }) => type === "content"));
  },

  async session_end_tells_how_it_ended(server) {
    const ends = { completed: "completed", error: "error", cancelled: "cancelled" };
    for (const [sent, status] of Object.entries(ends)) {
      const emit = engine(`req_end_${sent}`);
      const fails = sent === "error" ? [emit("error", { error_type: "system", message: "broken", recoverable: false })] : [];
      await server.run(`se-end-${sent}`, D, [emit("session_start", { session_id: "s", request_id: "r" }), ...fails, emit("session_end", { status: sent })]);
      const frames = await server.frames(`se-end-${sent}`, D);
      assert.deepEqual([frames.at(-1).data.status, of(frames, "error").length], [status, fails.length]);
    }
    await server.run("se-end-other", "agio", [{ type: "run_started", data: { query: "q" } }, { type: "run_failed", data: { error: "e" } }]);
    const other = await server.frames("se-end-other", D);
    assert.deepEqual(other.slice(-2).map(({ type }) => type), ["error", "session_end"]);
    assert.equal(other.at(-1).data.status, "error");
  },

  async the_summary_has_three_figures(server) {
    assert.deepEqual((await session(server)).at(-1).data.summary, { total_tokens: 1500, duration_ms: 3000, tool_calls: 2 });
    for (const [source, total, calls] of [["loom", 120, 2], ["agio", 120, 2], ["easyflow-chat", 120, 2]]) {
      const { summary } = (await server.frames(await corpusRun(server, source), D)).at(-1).data;
      assert.deepEqual([summary.total_tokens, summary.tool_calls], [total, calls], source);
    }
  },

  async the_examples_are_accepted(server) {
    const times = { timestamp: 1234567890 };
    const metadata = (sequence) => ({ request_id: "req_xxx", ...times, sequence });
    const examples = [
      { type: "session_start", data: { session_id: "sess_xxx", request_id: "req_xxx" }, metadata: { ...times, sequence: 0 } },
      { type: "thinking", data: { content: "思考内容片段", stage: "reasoning" }, metadata: metadata(1) },
      { type: "tool_call_start", data: { tool_id: "tool_xxx", tool_name: "display_table", description: "展示表格数据", arguments: { table_name: "销售数据", columns: ["产品", "销量"] } }, metadata: metadata(2) },
      { type: "tool_call_end", data: { tool_id: "tool_xxx", status: "success", result: {} }, metadata: { ...metadata(3), duration_ms: 150 } },
      { type: "content", data: { content: "最终答案内容片段", format: "markdown", is_complete: false }, metadata: metadata(4) },
      { type: "data", data: { data_type: "dataframe", data: { name: "数据名称", columns: [], rows: [] }, metadata: { description: "数据描述" } }, metadata: metadata(5) },
      { type: "error", data: { error_type: "validation", message: "用户可见的错误信息", details: { stack_trace: "...", context: {} }, recoverable: true }, metadata: metadata(6) },
      { type: "session_end", data: { status: "completed", summary: { total_tokens: 1500, duration_ms: 3000, tool_calls: 3 } }, metadata: metadata(7) },
    ];
    const { accepted } = await server.push("/v1/threads/sess_xxx/events?strict=true", examples);
    assert.equal(accepted, examples.length);
    const frames = (await server.frames("req_xxx", D)).filter(({ data }) => data.content !== "");
    assert.deepEqual(frames.map(({ type }) => type), examples.map(({ type }) => type));
    const { code, stdout } = await server.command(["validate", "--dialect", D], examples.map((each) => JSON.stringify(each)).join("\n"));
    assert.equal(code, 0, stdout);
  },

  async metadata_is_added(server) {
    await server.run("se-bare", D, [{ type: "content", data: { content: "no metadata" } }, { type: "session_end", data: { status: "completed" } }]);
    const frames = await server.frames("se-bare", D);
    assert.deepEqual(frames[0].type, "session_start");
    for (const { metadata } of frames) assertFields(metadata, { request_id: "string", timestamp: "number", sequence: "number" }, "metadata");
  },

  async a_strict_producer_is_told_what_is_wrong(server) {
    const emit = engine("req_strict");
    const start = emit("session_start", { session_id: "s", request_id: "req_strict" });
    const wrong = {
      stage: [emit("thinking", { content: "x", stage: "dreaming" }), "stage"],
      format: [emit("content", { content: "x", format: "pdf" }), "format"],
      data_type: [emit("data", { data_type: "map", data: {} }), "data_type"],
      error_type: [emit("error", { error_type: "odd", message: "m", recoverable: true }), "error_type"],
      unstarted: [emit("tool_call_end", { tool_id: "never", status: "success" }), "tool_id"],
      typo: [emit("content", { contnet: "x" }), "content"],
    };
    for (const [name, [frame, field]] of Object.entries(wrong)) {
      const { status, answer } = await strictly(server, name, [start, frame]);
      assert.deepEqual([status, answer.line, answer.accepted], [422, 2, 1], `${name}: ${JSON.stringify(answer)}`);
      assert.ok(JSON.stringify(answer).includes(field), `${name}: ${JSON.stringify(answer)}`);
      // The producer mends it, and goes on.
      const mended = await server.write(`/v1/runs/se-strict-${name}/events?dialect=${D}&strict=true`, [emit("content", { content: "x" })]);
      assert.equal(mended.status, 200, `${name}: ${JSON.stringify(mended.answer)}`);
    }
  },

  async slips_are_counted_as_warnings(server) {
    const emit = engine("req_loose");
    await server.run("se-loose", D, [emit("session_start", { session_id: "s", request_id: "req_loose" }), emit("thinking", { content: "x", stage: "dreaming" }), emit("content", { content: "y", format: "pdf" })]);
    const { warnings } = await server.get("/v1/runs/se-loose");
    assert.equal(warnings?.count, 2, JSON.stringify(warnings));
    assert.deepEqual(warnings.first.map(({ pointer }) => pointer), ["/data/stage", "/data/format"]);
    await session(server);
    assert.equal((await server.get("/v1/runs/se-session")).warnings, undefined, "a stream as documented has none");
    const { stdout } = await server.command(["show", "se-loose"]);
    assert.match(stdout, /dreaming/);
  },

  async all_events_are_kept_as_they_came(server) {
    await session(server);
    const raw = await server.read("/v1/runs/se-session/events", D, "&raw=true");
    assert.deepEqual(raw, SESSION("main"));
  },

  async an_engine_of_the_document_is_an_agent(server) {
    const response = await server.post("/api/chat?agent=streaming-engine", { session_id: "sess_engine", content: "hi" });
    const frames = (await events(response)).map(({ frame }) => frame);
    assert.equal(WORDS[D](frames), "最终答案内容片段");
    assertHas(of(frames, "tool_call_end")[0].data, { tool_id: "tool_1", status: "success", result: { rows: 1 } });
    assert.deepEqual(frames.at(-1).data, { status: "completed", summary: { total_tokens: 1500, duration_ms: 3000, tool_calls: 1 } });
    const failing = (await events(await server.post("/api/chat?agent=streaming-engine", { session_id: "sess_engine", content: "fail" }))).map(({ frame }) => frame);
    assert.deepEqual(failing.slice(-2).map(({ type }) => type), ["error", "session_end"]);
    assertHas(failing.at(-2).data, { error_type: "execution", message: "用户可见的错误信息", recoverable: false, details: { stack_trace: "…", context: {} } });
  },

  state_names_the_message: (server) => inBothStates(server, (state) => assertFields(state, { messageId: "string", role: ["assistant"] }, "the state")),

  async messages_of_both_roles_stand_in_order(server) {
    for (const content of ["first", "second"]) await events(await server.post("/api/chat?agent=streaming-engine", { session_id: "sess_roles", content }));
    const { messages } = await server.get("/v1/threads/sess_roles/messages");
    const words = messages.map(({ role, mainContent }) => [role, mainContent]);
    assert.deepEqual(words, [["user", "first"], ["assistant", "最终答案内容片段"], ["user", "second"], ["assistant", "最终答案内容片段"]]);
    for (const message of messages) assertFields(message, { messageId: "string", isStreaming: [false], toolCalls: "list", dataBlocks: "list" }, "a message");
    // What a person says while a request is under way stands between the assistant's words.
    const text = (message_id, role, content) => [
      { type: "text.started", message_id, role },
      { type: "text.delta", message_id, content },
      { type: "text.finished", message_id },
    ];
    const said = [["assistant", "one"], ["user", "wait"], ["assistant", "two"]];
    await server.run("se-between", "runwire", [...said.flatMap(([role, content]) => text(content, role, content)), { type: "run.completed" }]);
    const between = (await server.get("/v1/threads/se-between-thread/messages")).messages;
    assert.deepEqual(between.map(({ role, mainContent }) => [role, mainContent]), said);
    assert.equal(new Set(between.map(({ messageId }) => messageId)).size, 3);
  },

  state_has_thinking_and_answer: (server) =>
    inBothStates(server, (state) => assertHas(state, { thinkingContent: "思考内容片段。", mainContent: "最终答案内容片段" })),

  state_has_the_calls: (server) =>
    inBothStates(server, ({ toolCalls }) => {
      const [table, plot] = toolCalls;
      assertHas(table, { toolId: "tool_1", toolName: "display_table", description: "展示表格数据", arguments: { table_name: "销售数据", columns: ["产品", "销量"] }, status: "completed", result: { rows: 1, none: null }, durationMs: 150 });
      assertHas(plot, { toolId: "tool_2", status: "failed", error: { message: "错误信息", code: "ERROR_CODE" } });
    }),

  state_has_the_data: (server) =>
    inBothStates(server, ({ dataBlocks }) => {
      assert.deepEqual(dataBlocks.map(({ dataType }) => dataType), ["dataframe", "chart", "image", "custom"]);
      assertHas(dataBlocks[0], { data: { name: "销售数据", columns: ["产品", "销量"], rows: [["茶", 3]] }, metadata: { description: "数据描述" } });
    }),

  async state_is_streaming_until_the_end(server) {
    const frames = SESSION("streaming");
    await server.push(`/v1/runs/se-streaming/events?dialect=${D}`, frames.slice(0, 3));
    assert.equal((await server.get("/v1/runs/se-streaming/message")).isStreaming, true);
    await server.push(`/v1/runs/se-streaming/events?dialect=${D}`, frames.slice(3));
    assert.equal((await server.get("/v1/runs/se-streaming/message")).isStreaming, false);
    const handler = await sdkHandler(...frames.slice(0, 3));
    assert.equal(handler.message.isStreaming, true);
    handler.handleEvent(frames.at(-1));
    assert.equal(handler.message.isStreaming, false);
  },

  async state_tells_the_error(server) {
    const emit = engine("req_state_error");
    const frames = [emit("session_start", { session_id: "s", request_id: "r" }), emit("error", { error_type: "system", message: "坏了", recoverable: false }), emit("session_end", { status: "error" })];
    await server.run("se-state-error", D, frames);
    assertHas(await server.get("/v1/runs/se-state-error/message"), { hasError: true, errorMessage: "坏了" });
    assertHas((await sdkHandler(...frames)).message, { hasError: true, errorMessage: "坏了" });
    await inBothStates(server, (state) => assertHas(state, { hasError: false, errorMessage: undefined }));
  },

  async state_tells_request_and_times(server) {
    await inBothStates(server, ({ metadata }) => assertFields(metadata, { requestId: "string", startTime: "number", endTime: "number" }, "metadata"));
    const [start] = await session(server);
    const { metadata } = await server.get("/v1/runs/se-session/message");
    assert.equal(metadata.requestId, start.metadata.request_id);
    const digits = (time) => String(time).length;
    assert.deepEqual([digits(metadata.startTime), digits(metadata.endTime)], [13, 13], "milliseconds, as in the stream");
  },

  async the_handler_of_the_document_sees_every_run(server) {
    await fromEveryDocument(server, D, (frames, source) => {
      const handler = new DocumentHandler();
      for (const frame of frames) handler.handleEvent(frame);
      const { mainContent, toolCalls, isStreaming, hasError, metadata } = handler.message;
      assert.equal(mainContent, ANSWER, source);
      assert.deepEqual(toolCalls.map(({ id, name, arguments: given, failed }) => ({ id, name, arguments: given, failed })), CALLS, source);
      assert.deepEqual([isStreaming, hasError], [false, false], source);
      assertFields(metadata, { requestId: "string", startTime: "number", endTime: "number" }, source);
    });
  },

  async handler_takes_session_start() {
    const { message } = await sdkHandler(SESSION("h")[0]);
    assertHas(message, { isStreaming: true, role: "assistant" });
    assertHas(message.metadata, { requestId: "req_h", startTime: 1763300000000 });
  },

  async handler_takes_thinking() {
    assert.equal((await sdkHandler(...SESSION("h").slice(0, 4))).message.thinkingContent, "思考内容片段。");
  },

  async handler_takes_tool_call_start() {
    const [call] = (await sdkHandler(...SESSION("h").slice(0, 5))).message.toolCalls;
    assertHas(call, { toolId: "tool_1", toolName: "display_table", description: "展示表格数据", status: "calling" });
  },

  async handler_takes_tool_call_end() {
    const [good, bad] = (await sdkHandler(...SESSION("h").slice(0, 10))).message.toolCalls;
    assertHas(good, { status: "completed", result: { rows: 1, none: null } });
    assertHas(bad, { status: "failed", error: { message: "错误信息", code: "ERROR_CODE" } });
  },

  async handler_takes_content() {
    assert.equal((await sdkHandler(...SESSION("h").slice(0, 16))).message.mainContent, "最终答案内容片段");
  },

  async handler_takes_data() {
    assert.deepEqual((await sdkHandler(...SESSION("h").slice(0, 7))).message.dataBlocks.map(({ dataType }) => dataType), ["dataframe"]);
  },

  async handler_shows_a_fatal_error_at_once() {
    const emit = engine("r");
    const start = emit("session_start", { session_id: "s", request_id: "r" });
    const { message } = await sdkHandler(start, emit("error", { error_type: "system", message: "坏了", recoverable: false }));
    assertHas(message, { hasError: true, errorMessage: "坏了" });
    const old = await sdkHandler({ type: "token", content: "x" }, { type: "error", message: "旧" }, { type: "done" });
    assertHas(old.message, { hasError: true, errorMessage: "旧", isStreaming: false });
  },

  async handler_goes_on_after_a_recoverable_error() {
    const { message } = await sdkHandler(...SESSION("h").slice(0, 14));
    assertHas(message, { hasError: false, isStreaming: true });
    assertHas(message.notices?.[0], { level: "error", message: "慢" });
  },

  async handler_takes_session_end() {
    const { message } = await sdkHandler(...SESSION("h"));
    assertHas(message, { isStreaming: false, status: "completed" });
    assert.equal(message.metadata.endTime, 1763300000000);
  },

  async handler_keeps_progress(server) {
    const [call] = (await sdkHandler(...SESSION("h").slice(0, 6))).message.toolCalls;
    assertHas(call, { progress: 40, progressMessage: "正在查询" });
    await server.run("se-progress", D, SESSION("progress").slice(0, 6));
    const [told] = (await server.get("/v1/runs/se-progress/message")).toolCalls;
    assert.deepEqual(told, call, "the server's is the same");
  },

  async handler_passes_over_unknown_types() {
    const emit = engine("r");
    const { message } = await sdkHandler(emit("session_start", { session_id: "s", request_id: "r" }), emit("weather", { sky: "blue" }), emit("content", { content: "x" }));
    assert.equal(message.mainContent, "x");
  },

  async pieces_can_be_merged(server) {
    const emit = engine("req_merge");
    const pieces = Array.from({ length: 50 }, (_, at) => emit("content", { content: `${at} ` }));
    await server.run("se-merge", D, [emit("session_start", { session_id: "s", request_id: "r" }), ...pieces, emit("session_end", { status: "completed" })]);
    const all = await server.frames("se-merge", D);
    const merged = await server.frames("se-merge", D, "&compact=true");
    assert.equal(WORDS[D](all), pieces.map(({ data }) => data.content).join(""));
    assert.equal(WORDS[D](merged), WORDS[D](all));
    assert.ok(of(merged, "content").length < 5, `${of(merged, "content").length} pieces`);
  },

  async a_request_can_be_tried_again(server) {
    const [start] = (await events(await server.post("/api/chat?agent=streaming-engine", { session_id: "sess_again", content: "fail" }))).map(({ frame }) => frame);
    const response = await server.post(`/v1/runs/${start.data.request_id}/retry`, {});
    assert.equal(response.status, 201);
    const { run_id } = await response.json();
    const frames = (await events(await server.request(`/v1/runs/${run_id}/events?dialect=${D}`))).map(({ frame }) => frame);
    assert.equal(frames.at(-1).data.status, "error", "it fails again, as a request of its own");
    assert.notEqual(run_id, start.data.request_id);
  },

  async the_front_end_has_types_for_all_events() {
    const folder = path.join(ROOT, "sdk/typescript/dist");
    const declared = readdirSync(folder, { recursive: true }).filter((name) => name.endsWith(".d.ts")).map((name) => readFileSync(path.join(folder, name), "utf8")).join("\n");
    for (const type of Object.keys(TYPES)) assert.match(declared, new RegExp(`type: "${type}"`), `no type for ${type}`);
  },

  async the_chat_api_streams_a_request(server) {
    const response = await server.post("/api/chat?agent=streaming-engine", { session_id: "sess_chat", content: "hi", request_id: "req_chat" });
    assert.equal(response.headers.get("content-type"), "text/event-stream");
    const frames = (await events(response)).map(({ frame }) => frame);
    assert.deepEqual(frames[0].data, { session_id: "sess_chat", request_id: "req_chat" });
    assert.equal(frames.at(-1).type, "session_end");
  },

  async legacy_token(server) {
    const frames = await legacy(server, "token", [{ type: "token", content: "旧" }, { type: "token", data: { content: "的" } }, { type: "done" }]);
    assert.equal(WORDS[D](frames), "旧的");
  },

  async legacy_tool_call(server) {
    const frames = await legacy(server, "tool-call", [{ type: "tool_call", tool_id: "t", tool_name: "n", tool_args: '{"a":1}' }]);
    assertHas(of(frames, "tool_call_start")[0].data, { tool_id: "t", tool_name: "n", arguments: { a: 1 } });
  },

  async legacy_tool_result(server) {
    const frames = await legacy(server, "tool-result", [
      { type: "tool_call", tool_id: "t", tool_name: "n", tool_args: "{}" },
      { type: "tool_result", tool_id: "t", status: "completed", result: { rows: 1 } },
      { type: "tool_call", tool_id: "u", tool_name: "n", tool_args: "{}" },
      { type: "tool_result", tool_id: "u", status: "failed" },
    ]);
    assert.deepEqual(of(frames, "tool_call_end").map(({ data }) => [data.tool_id, data.status]), [["t", "success"], ["u", "failed"]]);
    assert.deepEqual(of(frames, "tool_call_end")[0].data.result, { rows: 1 });
  },

  async legacy_thinking(server) {
    const frames = await legacy(server, "thinking", [{ type: "thinking", content: "想" }, { type: "done" }]);
    assert.equal(of(frames, "thinking")[0].data.content, "想");
  },

  async legacy_final_answer(server) {
    const cases = {
      repeated: [[{ type: "token", content: "the " }, { type: "token", content: "answer" }, { type: "final_answer", content: "the answer" }], "the answer"],
      alone: [[{ type: "final_answer", content: "the answer" }], "the answer"],
      longer: [[{ type: "token", content: "the " }, { type: "final_answer", content: "the answer" }], "the answer"],
    };
    for (const [name, [frames, expected]] of Object.entries(cases)) {
      await legacy(server, `final-${name}`, [...frames, { type: "done" }]);
      for (const [dialect, words] of Object.entries(await wordsInEveryDialect(server, `se-legacy-final-${name}`, ["loom"]))) {
        assert.equal(words, expected, `${name}, read as ${dialect}`);
      }
    }
  },

  async legacy_dataframe_data(server) {
    const frames = await legacy(server, "dataframe", [{ type: "dataframe_data", data: { dataframe_name: "销售", columns: ["a"], data: [[1]] } }, { type: "done" }]);
    assertHas(of(frames, "data")[0].data, { data_type: "dataframe", data: { name: "销售", columns: ["a"], rows: [[1]] } });
  },

  async legacy_done(server) {
    const frames = await legacy(server, "done", [{ type: "token", content: "x" }, { type: "done" }]);
    assert.equal(frames.at(-1).data.status, "completed");
  },

  async legacy_error(server) {
    const frames = await legacy(server, "error", [{ type: "token", content: "x" }, { type: "error", message: "坏了" }, { type: "done" }]);
    assert.deepEqual(of(frames, "error").map(({ data }) => data.message), ["坏了"]);
    assert.equal(frames.at(-1).type, "session_end");
  },
};
