// A client of EasyFlow's chat, written from its document: SSE over fetch, decided by domain and type.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";

async function post(address, path, body, headers = {}) {
  return fetch(`${address}${path}`, { method: "POST", headers: { "Content-Type": "application/json", ...headers }, body: JSON.stringify(body) });
}

/** Reads events with their SSE names and ids, until the stream ends or the reader has enough. */
async function read(response, onEvent) {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const bytes of response.body) {
    const blocks = (rest + decoder.decode(bytes, { stream: true })).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const field = (name) => block.split("\n").find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
      const data = field("data");
      if (data === undefined) continue;
      if ((await onEvent({ id: field("id"), name: field("event") ?? "message", ...JSON.parse(data) })) === false) return;
    }
  }
}

const kind = ({ domain, type }) => `${domain}/${type}`;

/** A conversation whose form is filled in, first wrongly; the same stream goes on to the end. */
export async function easyflowFillsInAForm(address) {
  const conversation = `conv_${randomUUID()}`;
  const seen = [];
  let text = "";
  const response = await post(address, "/api/v1/bot/chat", { prompt: "weather in Paris?", botId: "demo", conversationId: conversation });
  assert.equal(response.headers.get("content-type"), "text/event-stream");
  await read(response, async (event) => {
    seen.push(event);
    assert.deepEqual([event.protocol, event.version, event.conversation_id], ["easyflow-chat", "1.1", conversation]);
    if (kind(event) === "llm/message") text += event.payload.delta ?? event.payload.content;
    if (kind(event) !== "interaction/form_request") return;
    const { form_id, schema } = event.payload;
    const form = (values) => post(address, "/api/v1/bot/form", { conversation_id: conversation, form_id, values });
    if (schema.properties.approved) {
      assert.equal((await form({ approved: true })).status, 200);
      return;
    }
    const wrong = await form({ name: "Ann", email: "no address" });
    assert.deepEqual([wrong.status, (await wrong.json()).errors[0].pointer], [422, "/email"]);
    const right = await form({ name: "Ann", email: "ann@example.com" });
    assert.deepEqual([right.status, (await right.json()).decision], [200, "submitted"]);
  });
  const states = seen.filter((event) => kind(event) === "system/status").map(({ payload }) => payload.state);
  assert.ok(states.includes("suspended") && states.includes("resumed"), states.join());
  const last = seen.at(-1);
  assert.deepEqual([last.name, kind(last)], ["done", "system/done"]);
  assert.ok(last.meta.completion_tokens > 0 && text.length > 0);
  assert.ok(seen.every(({ name }) => ["message", "error", "done"].includes(name)));
}

/** A reload while a form is open attaches; a lost connection goes on after the last event. */
export async function easyflowComesBack(address) {
  const conversation = `conv_${randomUUID()}`;
  const first = [];
  const started = await post(address, "/api/v1/bot/chat", { prompt: "hello", botId: "demo", conversationId: conversation });
  await read(started, (event) => {
    first.push(event);
    return kind(event) !== "interaction/form_request";
  });
  const reloaded = [];
  await read(await post(address, "/api/v1/bot/chat", { conversationId: conversation }), (event) => {
    reloaded.push(event);
    return kind(event) !== "interaction/form_request";
  });
  const texts = (events) => events.filter((event) => kind(event) === "llm/message").map(({ payload }) => payload.delta ?? payload.content).join("");
  assert.equal(texts(reloaded), texts(first), "a reload shows what was there");
  assert.ok(reloaded.length < first.length, "told in one go");

  const { id, payload } = first.at(-1);
  const rest = [];
  const back = await post(address, "/api/v1/bot/chat", { conversationId: conversation }, { "Last-Event-ID": id });
  const cancelled = await post(address, "/api/v1/bot/form", { conversation_id: conversation, form_id: payload.form_id, decision: "cancelled" });
  assert.equal(cancelled.status, 200);
  await read(back, (event) => void rest.push(event));
  assert.equal(kind(rest[0]), "system/status", "nothing twice");
  assert.ok(rest.some((event) => kind(event) === "interaction/form_cancel"));
  assert.equal(rest.at(-1).name, "done");
}

/** A refusal is the document's error event, after which the client ends the stream. */
export async function easyflowIsRefusedInItsOwnShape(address) {
  for (const [body, status, code] of [[{ prompt: "hi", botId: 42 }, 404, "agent_unknown"], [{ conversationId: "nobody" }, 404, "thread_unknown"]]) {
    const response = await post(address, "/api/v1/bot/chat", body);
    const events = [];
    await read(response, (event) => void events.push(event));
    assert.deepEqual([response.status, events.length, events[0].name, kind(events[0]), events[0].payload.code], [status, 1, "error", "system/error", code]);
  }
}
