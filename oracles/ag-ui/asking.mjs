// An agent that asks two things of a person, in AG-UI: node asking.mjs together|apart
//
// Together is one frame with two interrupts, apart is two frames. It goes on when both are answered.
import { createInterface } from "node:readline";

const say = (frame) => process.stdout.write(`${JSON.stringify(frame)}\n`);
const ids = { threadId: process.env.RUNWIRE_THREAD, runId: process.env.RUNWIRE_RUN };
const ask = (...interrupts) => say({ type: "RUN_FINISHED", ...ids, outcome: { type: "interrupt", interrupts } });

const pay = { id: "pay", reason: "tool_call", message: "Pay £48?", toolCallId: "call-pay" };
const name = { type: "object", required: ["name"], properties: { name: { type: "string" } } };
const who = { id: "who", reason: "input_required", message: "In whose name?", responseSchema: name };

say({ type: "RUN_STARTED", ...ids });
say({ type: "TOOL_CALL_START", toolCallId: "call-pay", toolCallName: "pay" });
say({ type: "TOOL_CALL_ARGS", toolCallId: "call-pay", delta: '{"pounds":48}' });
say({ type: "TOOL_CALL_END", toolCallId: "call-pay" });
if (process.argv[2] === "apart") [pay, who].forEach((question) => ask(question));
else ask(pay, who);

const answers = new Map();
for await (const line of createInterface({ input: process.stdin })) {
  const { type, interaction_id: id, values } = JSON.parse(line);
  if (type === "interaction.resolved") answers.set(id, values);
  if (answers.size === 2) break;
}

say({ type: "RUN_STARTED", ...ids });
say({ type: "TOOL_CALL_RESULT", messageId: "paid", toolCallId: "call-pay", content: "paid", role: "tool" });
say({ type: "TEXT_MESSAGE_START", messageId: "m1", role: "assistant" });
say({ type: "TEXT_MESSAGE_CONTENT", messageId: "m1", delta: `Two seats for ${answers.get("who")?.name ?? "nobody"}.` });
say({ type: "TEXT_MESSAGE_END", messageId: "m1" });
say({ type: "RUN_FINISHED", ...ids });
process.stdin.destroy();
