// A client of StreamingEngine: its message state (§3.1) and its MessageStreamHandler (§3.2), and what it must see.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";

interface EventMetadata {
  request_id: string;
  timestamp: number;
  sequence: number;
  duration_ms?: number;
}

interface Of<Type extends string, Data> {
  type: Type;
  data: Data;
  metadata: EventMetadata;
}

interface SessionSummary {
  total_tokens: number;
  duration_ms: number;
  tool_calls: number;
}

interface ErrorDetails {
  code?: string;
}

/** The events of §1.3. */
type SSEEvent =
  | Of<"session_start", { session_id: string; request_id: string }>
  | Of<"thinking", { content: string; stage?: "reasoning" | "planning" | "analyzing" }>
  | Of<"tool_call_start", { tool_id: string; tool_name: string; description: string; arguments: Record<string, unknown> }>
  | Of<"tool_call_end", { tool_id: string; status: "success" | "failed"; result?: unknown; error?: { message: string; code?: string } }>
  | Of<"content", { content: string; format?: "markdown" | "text" | "html"; is_complete?: boolean }>
  | Of<"data", { data_type: "dataframe" | "chart" | "image" | "custom"; data: unknown; metadata?: { description?: string } }>
  | Of<"error", { error_type: string; message: string; details?: ErrorDetails; recoverable: boolean }>
  | Of<"session_end", { status: "completed" | "error" | "cancelled"; summary: SessionSummary }>;

type EventOf<Type extends SSEEvent["type"]> = Extract<SSEEvent, { type: Type }>;

interface ToolCall {
  id: string;
  name: string;
  arguments: Record<string, unknown>;
  status: "calling" | "completed" | "failed";
  result?: unknown;
  error?: { message: string; code?: string } | undefined;
}

interface DataBlock {
  type: string;
  data: unknown;
}

/** §3.1. */
interface MessageState {
  messageId: string;
  role: "user" | "assistant";
  thinkingContent: string;
  mainContent: string;
  toolCalls: ToolCall[];
  dataBlocks: DataBlock[];
  isStreaming: boolean;
  hasError: boolean;
  errorMessage?: string;
  metadata: { requestId: string; startTime: number; endTime?: number };
}

/** §3.2: gathers a message from events; what its switch does not know, it ignores. */
class MessageStreamHandler {
  readonly message: MessageState = {
    messageId: randomUUID(),
    role: "assistant",
    thinkingContent: "",
    mainContent: "",
    toolCalls: [],
    dataBlocks: [],
    isStreaming: false,
    hasError: false,
    metadata: { requestId: "", startTime: 0 },
  };
  end: EventOf<"session_end">["data"] | undefined;

  handleEvent(event: SSEEvent): void {
    switch (event.type) {
      case "session_start":
        this.handleSessionStart(event);
        break;
      case "thinking":
        this.handleThinking(event);
        break;
      case "tool_call_start":
        this.handleToolCallStart(event);
        break;
      case "tool_call_end":
        this.handleToolCallEnd(event);
        break;
      case "content":
        this.handleContent(event);
        break;
      case "data":
        this.handleData(event);
        break;
      case "error":
        this.handleError(event);
        break;
      case "session_end":
        this.handleSessionEnd(event);
        break;
    }
  }

  private handleSessionStart({ data, metadata }: EventOf<"session_start">): void {
    this.message.isStreaming = true;
    this.message.metadata.requestId = data.request_id;
    this.message.metadata.startTime = metadata.timestamp;
  }

  private handleThinking({ data }: EventOf<"thinking">): void {
    this.message.thinkingContent += data.content;
  }

  private handleToolCallStart({ data }: EventOf<"tool_call_start">): void {
    const { tool_id: id, tool_name: name } = data;
    this.message.toolCalls.push({ id, name, arguments: data.arguments, status: "calling" });
  }

  private handleToolCallEnd({ data }: EventOf<"tool_call_end">): void {
    const call = this.message.toolCalls.find(({ id }) => id === data.tool_id);
    assert.ok(call, `${data.tool_id} ends and did not start`);
    call.status = data.status === "success" ? "completed" : "failed";
    call.result = data.result;
    call.error = data.error;
  }

  private handleContent({ data }: EventOf<"content">): void {
    this.message.mainContent += data.content;
  }

  private handleData({ data }: EventOf<"data">): void {
    this.message.dataBlocks.push({ type: data.data_type, data: data.data });
  }

  private handleError({ data }: EventOf<"error">): void {
    if (data.recoverable) return;
    this.message.hasError = true;
    this.message.errorMessage = data.message;
  }

  private handleSessionEnd({ data, metadata }: EventOf<"session_end">): void {
    this.message.isStreaming = false;
    this.message.metadata.endTime = metadata.timestamp;
    this.end = data;
  }
}

interface Chat {
  response: Response;
  events: SSEEvent[];
}

async function chat(
  address: string,
  body: Record<string, unknown>,
  onEvent: (event: SSEEvent) => void | Promise<void>,
): Promise<Chat> {
  const headers = { "Content-Type": "application/json" };
  const response = await fetch(`${address}/api/chat`, { method: "POST", headers, body: JSON.stringify(body) });
  assert.ok(response.body);
  const decoder = new TextDecoder();
  const events: SSEEvent[] = [];
  let rest = "";
  for await (const bytes of response.body) {
    const frames = (rest + decoder.decode(bytes, { stream: true })).split("\n\n");
    rest = frames.pop() ?? "";
    for (const frame of frames) {
      const data = frame.split("\n").find((line) => line.startsWith("data: "));
      if (data === undefined) continue;
      const event: SSEEvent = JSON.parse(data.slice("data: ".length));
      events.push(event);
      await onEvent(event);
    }
  }
  return { response, events };
}

/** A question, which the document has no event for: it comes as one that the switch ignores. */
interface Question {
  type: "runwire";
  data: { type: string; kind: "form" | "approval"; run_id: string; interaction_id: string };
}

function isQuestion(event: SSEEvent | Question): event is Question {
  return event.type === "runwire" && event.data.type === "interaction.requested";
}

/** Answers whatever is asked. */
async function answering(address: string, event: SSEEvent | Question): Promise<void> {
  if (!isQuestion(event)) return;
  const { kind, run_id, interaction_id } = event.data;
  const values = { name: "Ann", email: "ann@example.com" };
  const body = kind === "approval" ? { decision: "approved" } : { decision: "submitted", values };
  const answered = await fetch(`${address}/v1/runs/${run_id}/interactions/${interaction_id}`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  assert.equal(answered.status, 200, await answered.text());
}

const withoutSpaces = (text: string): string => text.replaceAll(/\s/g, "");

/** A whole request with the document's own body: thinking, tools, a table and a chart, the answer, figures. */
export async function streamingEngineChats(address: string): Promise<void> {
  const handler = new MessageStreamHandler();
  const session = `sess_${randomUUID()}`;
  const { response, events } = await chat(address, { session_id: session, content: "weather in Rome?" }, async (event) => {
    handler.handleEvent(event);
    await answering(address, event);
  });
  assert.equal(response.headers.get("content-type"), "text/event-stream");
  const { message, end } = handler;
  const [first] = events;
  assert.ok(first?.type === "session_start");
  assert.equal(first.data.session_id, session);
  assert.deepEqual(events.map(({ metadata }) => metadata.sequence), events.map((_, index) => index), "the sequence has no gap");
  assert.ok(events.every(({ metadata }) => metadata.request_id === message.metadata.requestId));
  const pieces = events.flatMap((event) => (event.type === "content" ? [event.data.is_complete] : []));
  assert.deepEqual(pieces, [...Array.from({ length: pieces.length - 1 }, () => false), true], "only the last piece is complete");
  assert.ok(message.thinkingContent.length > 0 && message.mainContent.length > 0);
  assert.ok(message.toolCalls.length >= 2 && message.toolCalls.every(({ status }) => status !== "calling"));
  assert.ok(["dataframe", "chart"].every((kind) => message.dataBlocks.some(({ type }) => type === kind)));
  assert.deepEqual([message.isStreaming, message.hasError, end?.status], [false, false, "completed"]);
  assert.ok(end && end.summary.total_tokens > 0 && end.summary.tool_calls >= 2);
  assert.ok((message.metadata.endTime ?? 0) >= message.metadata.startTime);
  const shown = await fetch(`${address}/v1/runs/${message.metadata.requestId}/message`);
  const told = (await shown.json()) as MessageState;
  assert.equal(withoutSpaces(message.mainContent), withoutSpaces(told.mainContent));
}

/** A second request of a session is another message of it; while the first is open, it is refused. */
export async function streamingEngineKeepsItsSession(address: string): Promise<void> {
  const session = `sess_${randomUUID()}`;
  const ended: string[] = [];
  for (const content of ["one", "two"]) {
    await chat(address, { session_id: session, content, agent: "failing" }, (event) => {
      if (event.type === "session_end") ended.push(event.data.status);
    });
  }
  assert.deepEqual(ended, ["error", "error"]);
  const listed = await fetch(`${address}/v1/threads/${session}/messages`);
  const { messages } = (await listed.json()) as { messages: MessageState[] };
  assert.deepEqual(messages.map(({ role }) => role), ["user", "assistant", "user", "assistant"]);
  assert.deepEqual(messages.filter(({ role }) => role === "user").map(({ mainContent }) => mainContent), ["one", "two"]);

  const refusals: Chat[] = [];
  await chat(address, { session_id: session, content: "go", agent: "endless" }, async (event) => {
    if (refusals.length > 0 || event.type !== "content") return;
    refusals.push(await chat(address, { session_id: session, content: "me too", agent: "endless" }, () => {}));
    await fetch(`${address}/v1/runs/${event.metadata.request_id}/cancel`, { method: "POST" });
  });
  const [refused] = refusals;
  assert.equal(refused?.response.status, 409);
  const [told] = refused.events;
  assert.ok(told?.type === "error");
  assert.deepEqual([told.data.recoverable, told.data.details?.code], [false, "thread_busy"]);
}
