// A client of Agio: the sample of its document (JavaScript/TypeScript 客户端), and what it must see.
import assert from "node:assert/strict";

/** As the document has it. */
interface AgentEvent {
  type: string;
  run_id: string;
  timestamp: string;
  data: Record<string, any>;
  metadata: Record<string, any>;
}

/** Takes an event; `false` means that it has seen enough. */
type EventHandler = (event: AgentEvent) => boolean | void | Promise<void>;

/** A question, which the document has no event for. */
interface Question {
  type: "interaction.requested";
  interaction_id: string;
  kind: "form" | "approval";
}

/** Reads the body as the sample does, and puts lines together that come in pieces. */
async function readEvents(response: Response, handleEvent: EventHandler): Promise<void> {
  assert.ok(response.body);
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  while (true) {
    const { done, value } = await reader.read();
    if (done) break;
    const lines = (rest + decoder.decode(value, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line.startsWith("data: ")) {
        const event: AgentEvent = JSON.parse(line.slice(6));
        if ((await handleEvent(event)) === false) return reader.cancel();
      }
    }
  }
}

async function streamAgent(address: string, body: Record<string, unknown>, handleEvent: EventHandler): Promise<Response> {
  const response = await fetch(`${address}/api/agent/stream`, {
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
  readonly tools: string[] = [];
  metrics: Record<string, number> = {};
  readonly events: AgentEvent[] = [];

  readonly handleEvent = (event: AgentEvent): void => {
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

  first(): AgentEvent {
    const [first] = this.events;
    assert.ok(first, "nothing came");
    return first;
  }
}

/** The event that asks comes as `debug`, which the sample ignores. */
function questionIn(event: AgentEvent): Question | undefined {
  const told: Question | undefined = event.type === "debug" ? event.data.runwire : undefined;
  return told?.type === "interaction.requested" ? told : undefined;
}

async function answer(address: string, event: AgentEvent): Promise<void> {
  const asked = questionIn(event);
  if (asked === undefined) return;
  const values = { name: "Ann", email: "ann@example.com" };
  const body = asked.kind === "approval" ? { decision: "approved" } : { decision: "submitted", values };
  const answered = await fetch(`${address}/v1/runs/${event.run_id}/interactions/${asked.interaction_id}`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  assert.equal(answered.status, 200, await answered.text());
}

/** A whole run with the sample's own body, which names no agent; the stream stays open while the run waits. */
export async function agioStreamsARun(address: string): Promise<void> {
  const screen = new Screen();
  const response = await streamAgent(address, { query: "你好，巴黎天气怎么样？" }, async (event) => {
    screen.handleEvent(event);
    await answer(address, event);
  });
  assert.equal(response.headers.get("content-type"), "text/event-stream");
  const [first, last] = [screen.first(), screen.events.at(-1)];
  assert.equal(first.type, "run_started");
  assert.equal(first.data.query, "你好，巴黎天气怎么样？");
  assert.equal(last?.type, "run_completed");
  assert.ok(last.data.response.length > 0 && screen.text.length > 0 && screen.tools.length >= 2);
  assert.ok((screen.metrics.total_tokens ?? 0) > 0 && (screen.metrics.duration ?? 0) > 0);
  for (const event of screen.events) {
    assert.equal(event.run_id, first.run_id);
    assert.ok(!Number.isNaN(Date.parse(event.timestamp)));
    assert.ok(typeof event.data === "object" && typeof event.metadata === "object");
  }
  const history = await fetch(`${address}/api/runs/${first.run_id}/events?limit=1000`);
  const stored = (await history.json()) as { events: AgentEvent[] };
  assert.deepEqual(stored.events, screen.events, "the history is what was streamed");
}

/** The FastAPI sample has the query as a parameter; a run that fails says so with `error`. */
export async function agioTakesAQueryParameter(address: string): Promise<void> {
  const screen = new Screen();
  const query = encodeURIComponent("hi & bye");
  const response = await fetch(`${address}/agent/stream?query=${query}&agent=failing`, { method: "POST" });
  await readEvents(response, screen.handleEvent);
  assert.equal(screen.first().data.query, "hi & bye");
  assert.deepEqual(screen.events.slice(-2).map(({ type }) => type), ["error", "run_failed"]);
}

/** Closing the stream stops nothing; cancelling does. */
export async function agioLeavesWithoutStopping(address: string): Promise<void> {
  let run = "";
  await streamAgent(address, { query: "go", agent: "endless" }, (event) => {
    run = event.run_id;
    return event.type !== "text_delta";
  });
  const shown = (await (await fetch(`${address}/v1/runs/${run}`)).json()) as { status: string };
  assert.equal(shown.status, "running");
  await fetch(`${address}/v1/runs/${run}/cancel`, { method: "POST" });
  const types: string[] = [];
  const events = await fetch(`${address}/api/runs/${run}/events`, { headers: { Accept: "text/event-stream" } });
  await readEvents(events, (event) => void types.push(event.type));
  assert.equal(types.at(-1), "run_cancelled");
}

/** A refusal is an event that the sample's client can show. */
export async function agioIsRefusedInItsOwnShape(address: string): Promise<void> {
  const refusals: [Record<string, unknown>, number, string][] = [
    [{ agent: "demo" }, 400, "bad_body"],
    [{ query: 1 }, 400, "bad_body"],
    [{ query: "hi", agent: "x" }, 404, "agent_unknown"],
  ];
  for (const [body, status, code] of refusals) {
    const screen = new Screen();
    const response = await streamAgent(address, body, screen.handleEvent);
    const { type, data } = screen.first();
    assert.deepEqual([response.status, type, data.error_type], [status, "error", code]);
    assert.ok(data.error.length > 0);
  }
}
