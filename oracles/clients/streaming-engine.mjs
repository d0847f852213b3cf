// A client of StreamingEngine: its message state (§3.1) and its MessageStreamHandler (§3.2), and what it must see.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";

/** Gathers a message from events, by the document's switch: what it does not know, it ignores. */
class MessageStreamHandler {
  message = {
    messageId: randomUUID(),
    role: "assistant",
    thinkingContent: "",
    mainContent: "",
    toolCalls: [],
    dataBlocks: [],
    isStreaming: false,
    hasError: false,
    errorMessage: undefined,
    metadata: { requestId: "", startTime: 0, endTime: undefined },
  };

  handleEvent(event) {
    const { message } = this;
    const { data, metadata } = event;
    switch (event.type) {
      case "session_start":
        message.isStreaming = true;
        message.metadata.requestId = data.request_id;
        message.metadata.startTime = metadata.timestamp;
        break;
      case "thinking":
        message.thinkingContent += data.content;
        break;
      case "tool_call_start":
        message.toolCalls.push({ id: data.tool_id, name: data.tool_name, arguments: data.arguments, status: "calling" });
        break;
      case "tool_call_end": {
        const call = message.toolCalls.find(({ id }) => id === data.tool_id);
        Object.assign(call, { status: data.status === "success" ? "completed" : "failed", result: data.result, error: data.error });
        break;
      }
      case "content":
        message.mainContent += data.content;
        break;
      case "data":
        message.dataBlocks.push({ type: data.data_type, data: data.data });
        break;
      case "error":
        if (!data.recoverable) {
          message.hasError = true;
          message.errorMessage = data.message;
        }
        break;
      case "session_end":
        message.isStreaming = false;
        message.metadata.endTime = metadata.timestamp;
        this.end = data;
        break;
    }
  }
}

async function chat(address, body, onEvent) {
  const headers = { "Content-Type": "application/json" };
  const response = await fetch(`${address}/api/chat`, { method: "POST", headers, body: JSON.stringify(body) });
  const decoder = new TextDecoder();
  const events = [];
  let rest = "";
  for await (const bytes of response.body) {
    const frames = (rest + decoder.decode(bytes, { stream: true })).split("\n\n");
    rest = frames.pop();
    for (const frame of frames) {
      const data = frame.split("\n").find((line) => line.startsWith("data: "));
      if (data === undefined) continue;
      const event = JSON.parse(data.slice("data: ".length));
      events.push(event);
      await onEvent(event);
    }
  }
  return { response, events };
}

/** Answers whatever is asked: the document has no such event, so it comes as one that the switch ignores. */
async function answering(address, event) {
  const asked = event.type === "runwire" && event.data.type === "interaction.requested" ? event.data : undefined;
  if (!asked) return;
  const body = asked.kind === "approval" ? { decision: "approved" } : { decision: "submitted", values: { name: "Ann", email: "ann@example.com" } };
  const url = `${address}/v1/runs/${asked.run_id}/interactions/${asked.interaction_id}`;
  const answered = await fetch(url, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  assert.equal(answered.status, 200, await answered.text());
}

/** A whole request: thinking, tools, a table and a chart, the answer, figures. */
export async function streamingEngineChats(address) {
  const handler = new MessageStreamHandler();
  const session = `sess_${randomUUID()}`;
  const { response, events } = await chat(address, { session_id: session, content: "weather in Rome?", agent: "demo" }, async (event) => {
    handler.handleEvent(event);
    await answering(address, event);
  });
  assert.equal(response.headers.get("content-type"), "text/event-stream");
  const { message, end } = handler;
  assert.equal(events[0].type, "session_start");
  assert.equal(events[0].data.session_id, session);
  assert.deepEqual(events.map(({ metadata }) => metadata.sequence), events.map((_, index) => index), "the sequence has no gap");
  assert.ok(events.every(({ metadata }) => metadata.request_id === message.metadata.requestId));
  assert.ok(message.thinkingContent.length > 0 && message.mainContent.length > 0);
  assert.ok(message.toolCalls.length >= 2 && message.toolCalls.every(({ status }) => status !== "calling"));
  assert.ok(message.dataBlocks.some(({ type }) => type === "dataframe") && message.dataBlocks.some(({ type }) => type === "chart"));
  assert.deepEqual([message.isStreaming, message.hasError, end.status], [false, false, "completed"]);
  assert.ok(end.summary.total_tokens > 0 && end.summary.tool_calls >= 2);
  assert.ok(message.metadata.endTime >= message.metadata.startTime);
  const told = await (await fetch(`${address}/v1/runs/${message.metadata.requestId}/message`)).json();
  assert.equal(message.mainContent.replaceAll(/\s/g, ""), told.mainContent.replaceAll(/\s/g, ""));
}

/** A second request of a session is another message of it; while the first is open, it is refused. */
export async function streamingEngineKeepsItsSession(address) {
  const session = `sess_${randomUUID()}`;
  const ended = [];
  for (const content of ["one", "two"]) {
    await chat(address, { session_id: session, content, agent: "failing" }, (event) => {
      if (event.type === "session_end") ended.push(event.data.status);
    });
  }
  assert.deepEqual(ended, ["error", "error"]);
  const { messages } = await (await fetch(`${address}/v1/threads/${session}/messages`)).json();
  assert.equal(messages.length, 2);

  let refused;
  await chat(address, { session_id: session, content: "go", agent: "endless" }, async (event) => {
    if (refused || event.type !== "content") return;
    refused = await chat(address, { session_id: session, content: "me too", agent: "endless" }, () => {});
    await fetch(`${address}/v1/runs/${event.metadata.request_id}/cancel`, { method: "POST" });
  });
  assert.equal(refused.response.status, 409);
  const [{ type, data }] = refused.events;
  assert.deepEqual([type, data.recoverable, data.details.code], ["error", false, "thread_busy"]);
}
