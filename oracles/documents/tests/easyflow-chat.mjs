// EasyFlow's document, played by a chat page and by back ends that are written from it alone.
import assert from "node:assert/strict";
import { once } from "node:events";
import http2 from "node:http2";
import { ANSWER, CALLS, WORDS, corpusRun, fromEveryDocument, fromOtherDocuments, wordsInEveryDialect } from "../corpus.mjs";
import { assertFields, assertHas, events, framed, rawRequest, shared } from "../client.mjs";

const D = "easyflow-chat";
const DOMAINS = ["llm", "tool", "system", "business", "workflow", "interaction", "debug"];
const ENVELOPE = { protocol: ["easyflow-chat"], version: ["1.1"], domain: "string", type: "string", conversation_id: "string", "message_id?": "string", "index?": "number", payload: "object", "meta?": "object" };
const NAMES = ["message", "error", "done"];
const hasOneOf = (...names) => (payload) => names.filter((name) => typeof payload[name] === "string").length === 1;

/** §6 to §13: the payload of each event. */
const PAYLOADS = {
  "llm/thinking": hasOneOf("delta", "content"),
  "llm/message": hasOneOf("delta", "content"),
  "tool/tool_call": { tool_call_id: "string", name: "string", arguments: "object" },
  "tool/tool_result": { tool_call_id: "string", status: ["success", "error"], "result?": "object" },
  "system/error": { code: "string", message: "string", "retryable?": "boolean", "detail?": "any" },
  "system/status": { state: ["initializing", "running", "suspended", "resumed"] },
  "business/error": { code: "string", message: "string" },
  "workflow/status": { node_id: "string", state: ["start", "suspend", "resume", "end"], "reason?": "string" },
  "interaction/form_request": { form_id: "string", "title?": "string", "description?": "string", schema: "object", "ui?": "object" },
  "interaction/form_cancel": { form_id: "string" },
  "system/done": {},
};

const SCHEMA = {
  type: "object",
  required: ["age", "email"],
  properties: { age: { type: "number", title: "年龄" }, email: { type: "string", title: "邮箱", format: "email" } },
};
const FORM = { form_id: "user_info_form", title: "补充信息", description: "请填写以下信息以继续", schema: SCHEMA, ui: { submit_text: "继续", cancel_text: "取消" } };
const VALUES = { age: 30, email: "a@b.com" };

const event = (domain, type, payload, more = {}) => ({ protocol: "easyflow-chat", version: "1.1", domain, type, conversation_id: "conv_1", payload, ...more });
const running = event("system", "status", { state: "running" });
const kind = ({ domain, type }) => `${domain}/${type}`;
const of = (frames, ...kinds) => frames.filter((frame) => kinds.includes(kind(frame)));
const payloads = (frames, of_) => of(frames, of_).map(({ payload }) => payload);

/** Writes a run and reads it back. */
async function roundTrip(server, name, frames) {
  await server.run(`ef-${name}`, D, frames);
  return server.frames(`ef-${name}`, D);
}

const chat = (server, body, headers) => server.post("/api/v1/bot/chat", body, headers);
const submit = (server, body) => server.post("/api/v1/bot/form", body);

/** Starts a conversation with the back end, which asks a form, and answers it when it comes. */
async function conversation(server, id, onForm) {
  const response = await chat(server, { prompt: "hi", botId: "easyflow", conversationId: id });
  return (await events(response, async (frame) => {
    if (kind(frame) === "interaction/form_request") await onForm(frame);
    return false;
  })).map((each) => ({ ...each.frame, name: each.event ?? "message" }));
}
const whole = shared((server) =>
  conversation(server, "conv_whole", async ({ payload }) => {
    const response = await submit(server, { conversation_id: "conv_whole", form_id: payload.form_id, values: VALUES });
    assert.equal(response.status, 200, await response.text());
  }),
);

const corpusEvents = (server, source) => corpusRun(server, source).then((run) => server.request(`/v1/runs/${run}/events?dialect=${D}`)).then((response) => events(response));

export const tests = {
  async a_chat_streams_its_answer(server) {
    const frames = await whole(server);
    assert.equal(WORDS[D](frames), "请填写年龄 30");
  },

  async runs_of_other_dialects_become_documented_events(server) {
    await fromOtherDocuments(server, D, (frames, source) => {
      for (const frame of frames) {
        if (frame.domain === "debug") continue;
        const fields = PAYLOADS[kind(frame)];
        assert.ok(fields, `${source}: ${kind(frame)} is not in the document`);
        if (typeof fields === "function") assert.ok(fields(frame.payload), `${source}: ${JSON.stringify(frame)}`);
        else assertFields(frame.payload, fields, `${source} ${kind(frame)}`);
      }
    });
  },

  async a_form_suspends_and_an_answer_resumes(server) {
    const kinds = (await whole(server)).map((frame) => `${kind(frame)} ${frame.payload.state ?? ""}`.trim());
    const at = (name) => kinds.indexOf(name);
    assert.ok(at("interaction/form_request") !== -1 && at("interaction/form_request") < at("system/status suspended"), kinds.join(", "));
    assert.ok(at("system/status suspended") < at("system/status resumed"), kinds.join(", "));
    assert.equal(kinds.at(-1), "system/done");
    // The same where an agent says first that it waits.
    const frames = await roundTrip(server, "early", [
      running,
      event("workflow", "status", { node_id: "node_1", state: "start" }),
      event("workflow", "status", { node_id: "node_1", state: "suspend", reason: "interaction" }),
      event("interaction", "form_request", FORM),
      event("system", "status", { state: "suspended" }),
    ]);
    const order = frames.map((frame) => `${kind(frame)} ${frame.payload.state ?? ""}`.trim());
    assert.ok(order.indexOf("interaction/form_request") < order.indexOf("system/status suspended"), order.join(", "));
    assert.equal(order.filter((each) => each === "system/status suspended").length, 1, order.join(", "));
    const first = await roundTrip(server, "first", [running, event("system", "status", { state: "suspended" }), event("interaction", "form_request", FORM)]);
    const told = first.map((frame) => `${kind(frame)} ${frame.payload.state ?? ""}`.trim()).filter((each) => !each.startsWith("debug/"));
    assert.deepEqual(told, ["system/status running", "interaction/form_request", "system/status suspended"]);
    assert.equal((await server.get("/v1/runs/ef-first")).status, "suspended");
  },

  async a_reload_shows_the_open_form(server) {
    const isForm = (frame) => kind(frame) === "interaction/form_request";
    const first = await events(await chat(server, { prompt: "hi", botId: "easyflow", conversationId: "conv_reload" }), isForm);
    const again = await events(await chat(server, { conversationId: "conv_reload" }), isForm);
    assert.deepEqual(again.at(-1).frame.payload, FORM);
    assert.equal(WORDS[D](again.map(({ frame }) => frame)), WORDS[D](first.map(({ frame }) => frame)));
    const back = await chat(server, { conversationId: "conv_reload" }, { "Last-Event-ID": first.at(-1).id });
    await submit(server, { conversation_id: "conv_reload", form_id: FORM.form_id, values: VALUES });
    const rest = (await events(back)).map(({ frame }) => frame);
    assert.equal(WORDS[D](rest), "年龄 30", "and goes on after the last event");
  },

  async the_headers_are_the_documented_ones(server) {
    const response = await chat(server, { prompt: "fail", botId: "easyflow", conversationId: "conv_headers" });
    assert.deepEqual([response.status, response.headers.get("content-type")], [200, "text/event-stream"]);
    await response.text();
  },

  async cache_control_is_no_cache(server) {
    const { header, body } = await rawChat(server, "conv_cache");
    for await (const _ of body);
    assert.deepEqual(header("cache-control"), ["no-cache"]);
  },

  async connection_is_keep_alive(server) {
    const { header, body } = await rawChat(server, "conv_connection");
    for await (const _ of body);
    assert.deepEqual(header("connection"), ["keep-alive"]);
    await whole(server);
    const attached = await rawRequest(server, "/api/v1/bot/chat", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ conversationId: "conv_whole" }) });
    assert.deepEqual(attached.header("connection"), ["keep-alive"], "attaching too");
    attached.close();
  },

  async http2_has_no_connection_header(server) {
    const session = http2.connect(server.address);
    // What breaks the connection is told by the request.
    session.on("error", () => {});
    try {
      const request = session.request({ ":method": "POST", ":path": "/api/v1/bot/chat", "content-type": "application/json" });
      request.end(JSON.stringify({ prompt: "fail", botId: "easyflow", conversationId: "conv_http2" }));
      const [headers] = await once(request, "response");
      let text = "";
      for await (const bytes of request.setEncoding("utf8")) text += bytes;
      assert.deepEqual([headers[":status"], headers["content-type"], headers.connection], [200, "text/event-stream", undefined]);
      assert.ok(text.includes("MODEL_CONFIG_INVALID"));
    } finally {
      session.close();
    }
  },

  async all_data_is_json(server) {
    const response = await chat(server, { prompt: "fail", botId: "easyflow", conversationId: "conv_json" });
    for (const { frame } of await events(response)) assertFields(frame, ENVELOPE, "data");
  },

  async the_stream_is_utf8(server) {
    const response = await chat(server, { prompt: "fail", botId: "easyflow", conversationId: "conv_utf8" });
    const text = new TextDecoder("utf-8", { fatal: true }).decode(await response.arrayBuffer());
    assert.ok(text.includes("模型配置错误"));
  },

  async event_names_are_the_documented_three(server) {
    for (const source of ["loom", "agio", "social-app", "streaming-engine", D]) {
      for (const { event: name, frame } of await corpusEvents(server, source)) {
        assert.ok(NAMES.includes(name), `${source}: ${name}`);
        assert.equal(name, kind(frame) === "system/done" ? "done" : "message", `${source}: ${kind(frame)}`);
      }
    }
  },

  async an_error_is_named_error(server) {
    const seen = await events(await chat(server, { prompt: "fail", botId: "easyflow", conversationId: "conv_error" }));
    assert.deepEqual([seen.at(-1).event, kind(seen.at(-1).frame)], ["error", "system/error"]);
    await server.run("ef-failed-agio", "agio", [{ type: "run_started", data: { query: "q" } }, { type: "run_failed", data: { error: "e" } }]);
    const other = await events(await server.request(`/v1/runs/ef-failed-agio/events?dialect=${D}`));
    assert.deepEqual([other.at(-1).event, kind(other.at(-1).frame)], ["error", "system/error"]);
  },

  async the_end_is_named_done(server) {
    for (const source of ["loom", "agio", "social-app", "streaming-engine", D]) {
      const { event: name, frame } = (await corpusEvents(server, source)).at(-1);
      assert.deepEqual([name, kind(frame)], ["done", "system/done"], source);
    }
  },

  async every_event_has_the_envelope(server) {
    await fromEveryDocument(server, D, (frames, source) => {
      for (const frame of frames) assertFields(frame, ENVELOPE, source);
    });
    for (const frame of await whole(server)) assertFields(frame, ENVELOPE, "a chat");
  },

  async every_event_names_its_conversation(server) {
    for (const { conversation_id } of await whole(server)) assert.equal(conversation_id, "conv_whole");
    await fromEveryDocument(server, D, (frames, source) => {
      assert.deepEqual([...new Set(frames.map(({ conversation_id }) => conversation_id))], [`corpus-${source}-thread`]);
    });
  },

  async message_ids_name_the_message(server) {
    await fromEveryDocument(server, D, (frames, source) => {
      const ids = of(frames, "llm/message").map(({ message_id }) => message_id);
      assert.equal(new Set(ids).size, 1, source);
      assert.equal(typeof ids[0], "string", source);
    });
  },

  async message_ids_of_a_producer_stay(server) {
    const frames = [
      running,
      event("llm", "message", { delta: "a" }, { message_id: "msg_1", index: 0 }),
      event("tool", "tool_call", { tool_call_id: "c", name: "n", arguments: {} }, { message_id: "msg_1" }),
      event("tool", "tool_result", { tool_call_id: "c", status: "success", result: {} }, { message_id: "msg_1" }),
      event("interaction", "form_request", FORM, { message_id: "msg_1" }),
    ];
    const came = await roundTrip(server, "message-ids", frames);
    for (const sent of frames.slice(1)) assert.equal(of(came, kind(sent))[0].message_id, "msg_1", kind(sent));
  },

  async indexes_number_a_message(server) {
    await fromEveryDocument(server, D, (frames, source) => {
      for (const own of grouped(of(frames, "llm/message", "llm/thinking")).values()) assert.deepEqual(own.map(({ index }) => index), own.map((_, at) => at), source);
    });
  },

  async the_first_event_names_the_run(server) {
    const [first] = await whole(server);
    assertFields(first.meta, { run_id: "string" }, "meta");
    assert.equal((await server.get(`/v1/runs/${first.meta.run_id}`)).thread_id, "conv_whole");
    await fromEveryDocument(server, D, ([start], source) => assert.equal(start.meta?.run_id, `corpus-${source}`));
    const [unsaid] = await roundTrip(server, "first", [event("llm", "message", { delta: "x" }), event("system", "done", {})]);
    assert.equal(unsaid.meta?.run_id, "ef-first");
  },

  async domains_are_the_documented_seven(server) {
    await fromEveryDocument(server, D, (frames, source) => {
      for (const { domain } of frames) assert.ok(DOMAINS.includes(domain), `${source}: ${domain}`);
    });
  },

  async what_has_no_event_is_debug(server) {
    const frames = await server.frames(await corpusRun(server, "loom"), D);
    const told = frames.filter(({ domain }) => domain === "debug").map(({ payload }) => payload.type);
    assert.ok(told.includes("state.snapshot") && told.includes("tool.output"), told.join());
  },

  async type_thinking(server) {
    const frames = await roundTrip(server, "thinking", [running, event("llm", "thinking", { delta: "分析" }, { message_id: "m", index: 0 }), event("llm", "thinking", { delta: "用户需求" }, { message_id: "m", index: 1 })]);
    assert.deepEqual(payloads(frames, "llm/thinking"), [{ delta: "分析" }, { delta: "用户需求" }]);
    const loom = await server.frames(await corpusRun(server, "loom"), D);
    assert.deepEqual(payloads(loom, "llm/thinking").map(({ delta, content }) => delta ?? content), ["let me see"]);
  },

  async thinking_may_come_whole(server) {
    const frames = await roundTrip(server, "whole-thinking", [running, event("llm", "thinking", { content: "分析用户需求" }), event("system", "done", {})]);
    assert.deepEqual(payloads(frames, "llm/thinking"), [{ content: "分析用户需求" }]);
    assert.equal((await server.get("/v1/runs/ef-whole-thinking/message")).thinkingContent, "分析用户需求");
  },

  async whole_thinking_is_seen_once(server) {
    const deltas = ["分析", "用户需求"].map((delta, index) => event("llm", "thinking", { delta }, { message_id: "m", index }));
    await server.run("ef-thinking-once", D, [running, ...deltas, event("llm", "thinking", { content: "分析用户需求" }, { message_id: "m" }), event("system", "done", {})]);
    assert.equal((await server.get("/v1/runs/ef-thinking-once/message")).thinkingContent, "分析用户需求");
  },

  async type_message(server) {
    const frames = await roundTrip(server, "message", [running, event("llm", "message", { delta: "这是" }, { message_id: "m", index: 0 }), event("llm", "message", { delta: "一个" }, { message_id: "m", index: 1 })]);
    assert.deepEqual(of(frames, "llm/message").map(({ index, payload }) => [index, payload]), [[0, { delta: "这是" }], [1, { delta: "一个" }]]);
  },

  async a_message_may_come_whole(server) {
    const content = "这是一个完整的回答";
    const deltas = [event("llm", "message", { delta: "这是一个" }, { index: 0 }), event("llm", "message", { delta: "完整的回答" }, { index: 1 })];
    const cases = { alone: [], repeated: deltas, longer: deltas.slice(0, 1) };
    for (const [name, before] of Object.entries(cases)) {
      await server.run(`ef-whole-${name}`, D, [running, ...before, event("llm", "message", { content }), event("system", "done", {})]);
      const words = await wordsInEveryDialect(server, `ef-whole-${name}`, ["loom"]);
      for (const [dialect, text] of Object.entries(words)) assert.equal(text, content, `${name}, read as ${dialect}`);
    }
  },

  async the_answer_is_whole(server) {
    await fromEveryDocument(server, D, (frames, source) => assert.equal(WORDS[D](frames), ANSWER, source));
  },

  async type_tool_call(server) {
    await fromEveryDocument(server, D, (frames, source) => {
      const calls = payloads(frames, "tool/tool_call");
      assert.deepEqual(calls.map(({ tool_call_id, name, arguments: given }) => [tool_call_id, name, given]), CALLS.map(({ id, name, arguments: given }) => [id, name, given]), source);
    });
  },

  async type_tool_result(server) {
    await fromEveryDocument(server, D, (frames, source) => {
      assert.deepEqual(payloads(frames, "tool/tool_result").map(({ tool_call_id, status }) => [tool_call_id, status]), [["c1", "success"], ["c2", "error"]], source);
    });
  },

  async results_are_objects(server) {
    await fromEveryDocument(server, D, (frames, source) => {
      for (const payload of payloads(frames, "tool/tool_result")) assertFields(payload, { "result?": "object" }, source);
    });
    const result = async (source) => payloads(await server.frames(await corpusRun(server, source), D), "tool/tool_result")[0].result;
    assert.deepEqual(await result("loom"), { value: "晴，21°C" });
    assert.deepEqual(await result("streaming-engine"), { temperature: 21, sky: "晴" });
  },

  async failed_results_carry_their_error(server) {
    await fromEveryDocument(server, D, (frames, source) => {
      const [good, bad] = payloads(frames, "tool/tool_result");
      assert.equal(good.error, undefined, source);
      assert.ok(JSON.stringify(bad).includes("no sea here"), `${source}: ${JSON.stringify(bad)}`);
    });
  },

  async errors_keep_their_form(server) {
    const call = event("tool", "tool_call", { tool_call_id: "c", name: "search", arguments: {} });
    for (const [name, error] of Object.entries({ text: "it broke", object: { code: 7, message: "it broke" } })) {
      const result = event("tool", "tool_result", { tool_call_id: "c", status: "error", error });
      const frames = await roundTrip(server, `error-${name}`, [running, call, result]);
      assert.deepEqual(payloads(frames, "tool/tool_result").map((payload) => payload.error), [error], name);
    }
  },

  async type_system_error(server) {
    const payload = { code: "MODEL_CONFIG_INVALID", message: "模型配置错误", retryable: false, detail: { key: "x" } };
    const frames = await roundTrip(server, "system-error", [running, event("system", "error", payload)]);
    assert.deepEqual(payloads(frames, "system/error"), [payload]);
    assert.equal((await server.get("/v1/runs/ef-system-error")).status, "failed");
  },

  async states_are_the_documented_four(server) {
    const frames = await roundTrip(server, "states", [event("system", "status", { state: "initializing" }), running, event("interaction", "form_request", FORM)]);
    assert.deepEqual(payloads(frames, "system/status").map(({ state }) => state), ["initializing", "running", "suspended"]);
    const states = payloads(await whole(server), "system/status").map(({ state }) => state);
    assert.deepEqual(states, ["running", "suspended", "resumed"]);
  },

  async type_business_error(server) {
    const payload = { code: "QUOTA_EXCEEDED", message: "配额不足" };
    const frames = await roundTrip(server, "business", [running, event("business", "error", payload), event("system", "done", {})]);
    assert.deepEqual(payloads(frames, "business/error"), [payload]);
  },

  async type_workflow_status(server) {
    const states = ["start", "suspend", "resume", "end"].map((state) => event("workflow", "status", { node_id: "node_1", state }));
    const frames = await roundTrip(server, "workflow", [running, ...states, event("system", "done", {})]);
    assert.deepEqual(payloads(frames, "workflow/status"), states.map(({ payload }) => payload));
  },

  async reasons_stay(server) {
    const states = ["start", "suspend", "resume", "end"].map((state) => event("workflow", "status", { node_id: "node_1", state, reason: "approval" }));
    const frames = await roundTrip(server, "reasons", [running, ...states, event("system", "done", {})]);
    assert.deepEqual(payloads(frames, "workflow/status").map(({ reason }) => reason), ["approval", "approval", "approval", "approval"]);
  },

  async a_node_is_suspended_once(server) {
    const node = (state, reason) => event("workflow", "status", { node_id: "node_1", state, reason });
    const form = event("interaction", "form_request", FORM);
    for (const [name, ...said] of [["before", node("suspend", "approval"), form], ["after", form, node("suspend", "approval")]]) {
      const frames = await roundTrip(server, `once-${name}`, [running, node("start"), ...said]);
      assert.equal(payloads(frames, "workflow/status").filter(({ state }) => state === "suspend").length, 1, name);
      assert.ok(frames.some(({ payload }) => (payload.extra ?? payload).reason === "approval"), name);
    }
  },

  async a_node_that_is_suspended_is_not_the_run(server) {
    const node = (state) => event("workflow", "status", { node_id: "node_1", state, reason: "interaction" });
    await server.push(`/v1/runs/ef-node/events?dialect=${D}`, [running, node("start"), node("suspend")]);
    assert.equal((await server.get("/v1/runs/ef-node")).status, "running");
    await server.push(`/v1/runs/ef-node/events?dialect=${D}`, [event("interaction", "form_request", FORM)]);
    assert.equal((await server.get("/v1/runs/ef-node")).status, "suspended");
  },

  async steps_are_nodes(server) {
    for (const [source, name] of [["loom", "act"], ["social-app", "worker"]]) {
      const states = payloads(await server.frames(await corpusRun(server, source), D), "workflow/status");
      assert.deepEqual(states.map(({ node_id, state }) => [node_id, state]), [[name, "start"], [name, "end"]], source);
    }
  },

  async type_form_request(server) {
    const frames = await whole(server);
    assert.deepEqual(payloads(frames, "interaction/form_request"), [FORM]);
  },

  async values_that_do_not_fit_are_refused(server) {
    await server.push(`/v1/runs/ef-values/events?dialect=${D}&thread=conv_values`, [running, event("interaction", "form_request", FORM)]);
    const wrong = await submit(server, { conversation_id: "conv_values", form_id: FORM.form_id, values: { age: "thirty", email: "no address" } });
    assert.equal(wrong.status, 422);
    assert.deepEqual((await wrong.json()).errors.map(({ pointer }) => pointer).sort(), ["/age", "/email"]);
    assert.equal((await server.get("/v1/runs/ef-values")).status, "suspended");
  },

  async approvals_are_forms(server) {
    await server.push("/v1/runs/ef-approval/events?dialect=loom&thread=conv_approval", [{ type: "run_start" }, { type: "tool_approval", call_id: "c", name: "rm", arguments: { path: "x" } }]);
    const [form] = payloads(await server.frames("ef-approval", D), "interaction/form_request");
    assert.equal(form.schema.properties.approved.type, "boolean");
    const response = await submit(server, { conversation_id: "conv_approval", form_id: form.form_id, values: { approved: false } });
    assert.equal(response.status, 200);
    const { interactions } = await server.get("/v1/runs/ef-approval/message");
    assert.equal(interactions[0].status, "rejected");
  },

  async type_form_cancel(server) {
    await server.push(`/v1/runs/ef-cancel/events?dialect=${D}&thread=conv_cancel`, [running, event("interaction", "form_request", FORM)]);
    const response = await submit(server, { conversation_id: "conv_cancel", form_id: FORM.form_id, decision: "cancelled" });
    assert.equal(response.status, 200, await response.text());
    assert.deepEqual(payloads(await server.frames("ef-cancel", D), "interaction/form_cancel"), [{ form_id: FORM.form_id }]);
    const withdrawn = await roundTrip(server, "withdrawn", [running, event("interaction", "form_request", FORM), event("interaction", "form_cancel", { form_id: FORM.form_id })]);
    assert.deepEqual(payloads(withdrawn, "interaction/form_cancel"), [{ form_id: FORM.form_id }]);
  },

  async a_form_is_submitted_by_http(server) {
    await server.push(`/v1/runs/ef-http/events?dialect=${D}&thread=conv_http`, [running, event("interaction", "form_request", FORM)]);
    const response = await submit(server, { conversation_id: "conv_http", form_id: FORM.form_id, values: VALUES });
    assertHas(await response.json(), { conversation_id: "conv_http", form_id: FORM.form_id });
    assert.equal((await server.get("/v1/runs/ef-http")).status, "running");
    const { interactions } = await server.get("/v1/runs/ef-http/message");
    assertHas(interactions[0], { status: "submitted", values: VALUES });
  },

  async a_form_is_submitted_over_the_chat_socket(server) {
    await server.push(`/v1/runs/ef-socket/events?dialect=${D}&thread=conv_socket`, [running, event("interaction", "form_request", FORM)]);
    const socket = await server.socket("/api/v1/bot/ws");
    socket.send({ conversation_id: "conv_socket", form_id: FORM.form_id, values: { age: "thirty" } });
    assert.ok(JSON.stringify(await socket.next()).includes("invalid_answer"));
    assert.equal((await server.get("/v1/runs/ef-socket")).status, "suspended");
    socket.send({ conversation_id: "conv_socket", form_id: FORM.form_id, values: VALUES });
    assert.equal((await socket.next()).form_id, FORM.form_id);
    socket.close();
    assert.equal((await server.get("/v1/runs/ef-socket")).status, "running");
  },

  async a_form_is_submitted_over_the_general_socket(server) {
    await server.push(`/v1/runs/ef-general/events?dialect=${D}&thread=conv_general`, [running, event("interaction", "form_request", FORM)]);
    const socket = await server.socket("/v1/ws");
    socket.send({ conversation_id: "conv_general", form_id: FORM.form_id, values: VALUES });
    assertHas(await socket.next(), { op: "ack", form_id: FORM.form_id });
    socket.close();
    assert.equal((await server.get("/v1/runs/ef-general")).status, "running");
  },

  async a_form_has_one_answer(server) {
    await server.push(`/v1/runs/ef-once/events?dialect=${D}&thread=conv_once`, [running, event("interaction", "form_request", FORM)]);
    const answer = (values) => submit(server, { conversation_id: "conv_once", form_id: FORM.form_id, values }).then(({ status }) => status);
    assert.deepEqual([await answer(VALUES), await answer(VALUES), await answer({ ...VALUES, age: 31 })], [200, 200, 409]);
  },

  async a_back_end_of_the_document_is_an_agent(server) {
    const frames = await whole(server);
    assert.deepEqual(frames.filter(({ domain }) => domain === "llm").map(({ payload }) => payload.delta), ["分析用户需求", "请填写", "年龄 30"]);
    assert.equal(of(frames, "system/status").filter(({ payload }) => payload.state === "resumed").length, 1, "resumed once");
  },

  async done_has_the_figures(server) {
    const done = (await whole(server)).at(-1);
    assertHas(done.meta, { prompt_tokens: 1234, completion_tokens: 456, latency_ms: 2300 });
    for (const source of ["loom", "agio"]) {
      const { meta } = (await server.frames(await corpusRun(server, source), D)).at(-1);
      assertHas(meta, { prompt_tokens: 100, completion_tokens: 20 }, source);
    }
  },

  async the_example_of_done_is_accepted(server) {
    const example = { domain: "system", type: "done", meta: { prompt_tokens: 1234, completion_tokens: 456, latency_ms: 2300 } };
    const frames = await roundTrip(server, "done", [running, example]);
    assertFields(frames.at(-1), ENVELOPE, "done");
    assertHas(frames.at(-1).meta, example.meta);
  },

  async nothing_comes_after_an_error(server) {
    const seen = await events(await chat(server, { prompt: "fail", botId: "easyflow", conversationId: "conv_nothing" }));
    const at = seen.findIndex(({ event: name }) => name === "error");
    assert.equal(at, seen.length - 1);
    await server.run("ef-error-se", "streaming-engine", [{ type: "error", data: { error_type: "system", message: "m", recoverable: false } }, { type: "session_end", data: { status: "error" } }]);
    const other = await events(await server.request(`/v1/runs/ef-error-se/events?dialect=${D}`));
    assert.deepEqual(other.map(({ event: name }) => name).filter((name) => name !== "message"), ["error"]);
    assert.equal(other.at(-1).event, "error");
  },

  async errors_keep_domain_type_and_code(server) {
    const body = framed([running]).trim();
    const sse = `event: message\ndata: ${body}\n\nevent: error\ndata: ${JSON.stringify(event("business", "error", { code: "QUOTA_EXCEEDED", message: "配额不足" }))}\n\n`;
    await server.push(`/v1/runs/ef-quota/events?dialect=${D}`, sse, { framing: "sse" });
    const seen = await events(await server.request(`/v1/runs/ef-quota/events?dialect=${D}`));
    const { event: name, frame } = seen.at(-1);
    assert.deepEqual([name, kind(frame), frame.payload.code], ["error", "business/error", "QUOTA_EXCEEDED"]);
  },

  async an_error_that_ends_nothing_is_a_message(server) {
    for (const source of [D, "agio"]) {
      const seen = await corpusEvents(server, source);
      assert.deepEqual(seen.filter(({ event: name }) => name === "error"), [], source);
    }
    await server.run("ef-notice", "streaming-engine", [{ type: "error", data: { error_type: "timeout", message: "slow", recoverable: true } }, { type: "content", data: { content: "x" } }, { type: "session_end", data: { status: "completed" } }]);
    const seen = await events(await server.request(`/v1/runs/ef-notice/events?dialect=${D}`));
    const [notice] = seen.filter(({ frame }) => kind(frame) === "system/error");
    assert.equal(notice.event, "message");
    assert.equal(seen.at(-1).event, "done");
  },

  async a_conversation_goes_through_its_states(server) {
    const states = {
      "system/status running": "RUNNING", "llm/message": "LLM_OUTPUT", "interaction/form_request": "INTERACTION_REQUESTED",
      "system/status suspended": "SUSPENDED", "system/status resumed": "RESUMED", "system/done": "DONE",
    };
    const path = (await whole(server)).map((frame) => states[`${kind(frame)} ${frame.payload.state ?? ""}`.trim()]).filter((state) => state !== undefined);
    assert.deepEqual(path, ["RUNNING", "LLM_OUTPUT", "INTERACTION_REQUESTED", "SUSPENDED", "RESUMED", "LLM_OUTPUT", "DONE"]);
  },

  async new_domains_pass(server) {
    const invented = event("weather", "report", { sky: "blue" });
    const frames = await roundTrip(server, "domain", [running, invented, event("system", "done", {})]);
    assert.deepEqual(payloads(frames, "weather/report"), [{ sky: "blue" }]);
  },

  async new_types_pass(server) {
    const invented = event("llm", "citation", { url: "https://example.com" }, { message_id: "m", meta: { a: 1 } });
    const frames = await roundTrip(server, "type", [running, invented, event("system", "done", {})]);
    assertHas(of(frames, "llm/citation")[0], { payload: invented.payload, message_id: "m", meta: { a: 1 } });
  },

  async payloads_may_have_more(server) {
    const payload = { delta: "x", tone: "warm", scores: [1, null] };
    const frames = await roundTrip(server, "more", [running, event("llm", "message", payload), event("system", "done", {})]);
    assert.deepEqual(payloads(frames, "llm/message"), [payload]);
  },

  async events_of_version_1_0_are_read(server) {
    const frames = await roundTrip(server, "version", [{ ...running, version: "1.0" }, { ...event("llm", "message", { delta: "old" }), version: "1.0" }]);
    assert.equal(WORDS[D](frames), "old");
    for (const { version } of frames) assert.equal(version, "1.1");
  },

  async frames_alone_say_what_they_mean(server) {
    await fromEveryDocument(server, D, async (frames, source) => {
      // Read back without names, a run means the same.
      await server.run(`ef-nameless-${source}`, D, frames);
      const came = await server.frames(`ef-nameless-${source}`, D);
      const spoken = (all) => all.map(kind).filter((each) => each !== "debug/runwire");
      assert.deepEqual(spoken(came), spoken(frames), source);
      assert.equal(WORDS[D](came), ANSWER, source);
    });
  },

  async frames_are_the_same_in_other_transports(server) {
    const run = await corpusRun(server, "loom");
    const ndjson = await server.frames(run, D);
    const sse = (await corpusEvents(server, "loom")).map(({ frame }) => frame);
    const socket = await server.socket("/v1/ws");
    socket.send({ op: "subscribe", id: "a", run, dialect: D });
    const ws = [];
    for (;;) {
      const message = await socket.next();
      if (message.op === "end") break;
      if (message.op === "frame") ws.push(message.frame);
    }
    socket.close();
    assert.deepEqual(sse, ndjson);
    assert.deepEqual(ws, ndjson);
  },
};

/** Groups frames by their message. */
function grouped(frames) {
  const groups = new Map();
  for (const frame of frames) groups.set(frame.message_id, [...(groups.get(frame.message_id) ?? []), frame]);
  return groups;
}

function rawChat(server, conversationId) {
  const body = JSON.stringify({ prompt: "fail", botId: "easyflow", conversationId });
  return rawRequest(server, "/api/v1/bot/chat", { method: "POST", headers: { "Content-Type": "application/json" }, body });
}
