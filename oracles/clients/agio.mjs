// A client of Agio, shaped like the sample in its document (JavaScript/TypeScript 客户端), and what it must see.
import assert from "node:assert/strict";

/**
 * @typedef {object} AgentEvent
 * @property {string} type
 * @property {string} run_id
 * @property {string} timestamp
 * @property {Record<string, any>} data
 * @property {Record<string, any>} metadata
 */

/** Reads the body as the sample does, and puts lines together that come in pieces. */
async function readEvents(response, handleEvent) {
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  while (true) {
    const { done, value } = await reader.read();
    if (done) break;
    const lines = (rest + decoder.decode(value, { stream: true })).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      if (line.startsWith("data: ")) {
        /** @type {AgentEvent} */
        const event = JSON.parse(line.slice(6));
        if ((await handleEvent(event)) === false) return reader.cancel();
      }
    }
  }
}

async function streamAgent(url, body, handleEvent) {
  const response = await fetch(url, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  await readEvents(response, handleEvent);
  return response;
}

/** What the sample's `handleEvent` shows. */
class Screen {
  text = "";
  tools = [];
  metrics;
  events = [];

  handleEvent = (/** @type {AgentEvent} */ event) => {
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
  };
}

/** The event that asks, which the document has no type for, comes as `debug`. */
const questionIn = (event) => {
  const told = event.type === "debug" ? event.data.runwire : undefined;
  return told?.type === "interaction.requested" ? told : undefined;
};

async function answer(address, run, interaction, body) {
  const url = `${address}/v1/runs/${run}/interactions/${interaction}`;
  const answered = await fetch(url, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  assert.equal(answered.status, 200, await answered.text());
}

/** A whole run over the path of the JavaScript sample; the stream stays open while it waits. */
export async function agioStreamsARun(address) {
  const screen = new Screen();
  const response = await streamAgent(`${address}/api/agent/stream`, { query: "你好，巴黎天气怎么样？", agent: "demo" }, async (event) => {
    screen.handleEvent(event);
    const asked = questionIn(event);
    if (asked?.kind === "form") await answer(address, event.run_id, asked.interaction_id, { decision: "submitted", values: { name: "Ann", email: "ann@example.com" } });
    if (asked?.kind === "approval") await answer(address, event.run_id, asked.interaction_id, { decision: "approved" });
  });
  assert.equal(response.headers.get("content-type"), "text/event-stream");
  const [first, last] = [screen.events[0], screen.events.at(-1)];
  assert.equal(first.type, "run_started");
  assert.equal(first.data.query, "你好，巴黎天气怎么样？");
  assert.equal(last.type, "run_completed");
  assert.ok(last.data.response.length > 0 && screen.text.length > 0 && screen.tools.length >= 2);
  assert.ok(screen.metrics.total_tokens > 0 && screen.metrics.duration > 0);
  for (const event of screen.events) {
    assert.equal(event.run_id, first.run_id);
    assert.ok(!Number.isNaN(Date.parse(event.timestamp)) && typeof event.data === "object" && typeof event.metadata === "object");
  }
  const stored = await (await fetch(`${address}/api/runs/${first.run_id}/events?limit=1000`)).json();
  assert.deepEqual(stored.events, screen.events, "the history is what was streamed");
}

/** The FastAPI sample has the query as a parameter; a run that fails says so with `error`. */
export async function agioTakesAQueryParameter(address) {
  const screen = new Screen();
  const response = await fetch(`${address}/agent/stream?query=${encodeURIComponent("hi & bye")}&agent=failing`, { method: "POST" });
  await readEvents(response, screen.handleEvent);
  assert.equal(screen.events[0].data.query, "hi & bye");
  assert.deepEqual(screen.events.slice(-2).map(({ type }) => type), ["error", "run_failed"]);
}

/** Closing the stream stops nothing; cancelling does. */
export async function agioLeavesWithoutStopping(address) {
  let run;
  await streamAgent(`${address}/api/agent/stream`, { query: "go", agent: "endless" }, (event) => {
    run = event.run_id;
    return event.type !== "text_delta";
  });
  const status = async () => (await (await fetch(`${address}/v1/runs/${run}`)).json()).status;
  assert.equal(await status(), "running");
  await fetch(`${address}/v1/runs/${run}/cancel`, { method: "POST" });
  const types = [];
  const events = await fetch(`${address}/api/runs/${run}/events`, { headers: { Accept: "text/event-stream" } });
  await readEvents(events, (event) => void types.push(event.type));
  assert.equal(types.at(-1), "run_cancelled");
}

/** A refusal is an event that the sample's client can show. */
export async function agioIsRefusedInItsOwnShape(address) {
  for (const [body, status, code] of [[{ query: "hi" }, 422, "agent_needed"], [{ agent: "demo" }, 400, "bad_body"], [{ query: "hi", agent: "x" }, 404, "agent_unknown"]]) {
    const screen = new Screen();
    const response = await streamAgent(`${address}/api/agent/stream`, body, screen.handleEvent);
    const [{ type, data }] = screen.events;
    assert.deepEqual([response.status, type, data.error_type], [status, "error", code]);
    assert.ok(data.error.length > 0);
  }
}
