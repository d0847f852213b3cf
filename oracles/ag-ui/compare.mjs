// Compares what the client holds for one run with our own fold of it.
import { isDeepStrictEqual } from "node:util";

/**
 * Reads one run out of the client's messages: those with the given ids.
 */
export function viewOfRun(messages, ids) {
  const own = messages.filter(({ id }) => ids.has(id));
  const texts = (role) => {
    const said = own.filter((message) => message.role === role && message.content);
    const isContinued = (at) => role === "assistant" && at > 0 && continues(said[at - 1].id, said[at].id);
    return said.map(({ content }, at) => (at === 0 || isContinued(at) ? "" : "\n\n") + content).join("");
  };
  const calls = own
    .flatMap(({ toolCalls = [] }) => toolCalls)
    .map((call) => ({ id: call.id, name: call.function.name, argumentsText: call.function.arguments }));
  const results = own
    .filter(({ role }) => role === "tool")
    .map(({ toolCallId, content }) => ({ toolCallId, content }));
  return { text: texts("assistant"), thinking: texts("reasoning"), calls, results };
}

/** Tells whether a message continues the one before it: `m1#2` after `m1`. */
function continues(previous, id) {
  const base = (id) => /^(.*)#\d+$/s.exec(id)?.[1];
  return base(id) !== undefined && (previous === base(id) || base(previous) === base(id));
}

/** Lists how the client's view and our fold differ; `takenCallIds` are those of earlier calls in the thread. */
export function differences(view, fold, takenCallIds) {
  const found = [];
  const expect = (what, client, ours) => {
    if (!isDeepStrictEqual(client, ours)) found.push(`${what}: client has ${show(client)}, message.json ${show(ours)}`);
  };
  expect("text", view.text, fold.mainContent ?? "");
  expect("thinking", view.thinking, fold.thinkingContent ?? "");

  const ours = fold.toolCalls ?? [];
  if (view.calls.length !== ours.length) {
    expect("tool calls", view.calls.map(({ id }) => id), ours.map(({ toolId }) => toolId));
    return found;
  }
  // The client groups calls under their parent messages, so order says nothing: they are matched by id.
  for (const call of view.calls) {
    const our = ours.find(({ toolId }) => toolId === call.id);
    if (our === undefined) {
      found.push(`tool call ${call.id}: message.json has none`);
      continue;
    }
    expect(`tool call ${call.id} name`, call.name, our.toolName);
    if (our.argumentsText !== undefined) {
      expect(`tool call ${call.id} arguments text`, call.argumentsText, our.argumentsText);
    } else {
      expect(`tool call ${call.id} arguments`, parsedArguments(call.argumentsText), our.arguments ?? {});
    }
    const results = view.results.filter(({ toolCallId }) => toolCallId === call.id);
    if (results.length > 1) found.push(`tool call ${call.id}: ${results.length} results`);
    compareResult(call.id, results[0]?.content, our, expect);
  }
  // A front-end tool is answered in the run after the one that called it.
  const known = new Set([...takenCallIds, ...view.calls.map(({ id }) => id)]);
  for (const { toolCallId } of view.results) {
    if (!known.has(toolCallId)) found.push(`result for ${toolCallId}, which this run did not call`);
  }
  return found;
}

function compareResult(id, content, our, expect) {
  // A failed call carries its error.
  if (our.status === "failed" && our.error !== undefined) return expect(`tool call ${id} result`, content, our.error.message);
  const hasResult = our.result !== undefined;
  const text = !hasResult || typeof our.result === "string" ? (our.result ?? our.error?.message) : JSON.stringify(our.result);
  if (hasResult && typeof our.result !== "string" && isSameJson(content, our.result)) return;
  // A call that ended without a result is told by an empty one: the event has to have content.
  const wasEmpty = text === undefined && our.status !== "calling";
  expect(`tool call ${id} result`, content, wasEmpty ? "" : text);
}

/**
 * Whether compact JSON text says the value. Compared as values, because
 * re-serialising in JavaScript changes `1.0`, and the order of numeric keys.
 */
function isSameJson(content, value) {
  if (Array.isArray(content)) return isDeepStrictEqual(content, value);
  if (typeof content !== "string" || /\s/.test(content.replace(/"(?:[^"\\]|\\.)*"/g, ""))) return false;
  try {
    return isDeepStrictEqual(JSON.parse(content), value);
  } catch {
    return false;
  }
}

/** No ARGS at all means a call without arguments. Text that is no JSON stays text. */
function parsedArguments(text) {
  if (text === "") return {};
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function show(value) {
  const text = value === undefined ? "none" : JSON.stringify(value);
  return text.length > 160 ? `${text.slice(0, 160)}…` : text;
}
