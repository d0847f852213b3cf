// A client of Loom's WebSocket: one message in, the frames of the document out, one end.
import assert from "node:assert/strict";
import { once } from "node:events";
import WebSocket from "ws";

class LoomSocket {
  #socket;
  #messages = [];
  #waiting = [];
  /** What became of the answers that were given. */
  answered = [];

  static async open(address) {
    const loom = new LoomSocket();
    loom.#socket = new WebSocket(`${address.replace("http", "ws")}/loom`);
    loom.#socket.on("message", (text) => {
      loom.#messages.push(JSON.parse(text.toString()));
      loom.#waiting.splice(0).forEach((wake) => wake());
    });
    await once(loom.#socket, "open");
    return loom;
  }

  send(message) {
    this.#socket.send(typeof message === "string" ? message : JSON.stringify(message));
  }

  async next() {
    while (this.#messages.length === 0) await new Promise((wake) => this.#waiting.push(wake));
    return this.#messages.shift();
  }

  /** Reads to the end of a run, and gives its frames and its end. */
  async run(id, onFrame = () => {}) {
    const frames = [];
    for (;;) {
      const message = await this.next();
      assert.equal(message.id, id);
      if (message.type === "answered") {
        this.answered.push(message.decision);
        continue;
      }
      if (message.type !== "run_stream_event") return { frames, end: message };
      frames.push(message.event);
      await onFrame(message.event);
    }
  }

  close() {
    this.#socket.close();
  }
}

/** A form, which the document has no event for. */
const formIn = ({ value }) => (value?.runwire?.type === "interaction.requested" ? value.runwire : undefined);

/** A whole run, frame by frame, in the document's order; its questions are answered over the same socket. */
export async function loomRuns(address) {
  const loom = await LoomSocket.open(address);
  loom.send({ type: "run", id: "1", message: "weather in Paris?", agent: "demo", thread_id: "loom-1" });
  let text = "";
  const { frames, end } = await loom.run("1", (frame) => {
    if (frame.type === "message_chunk") text += frame.content;
    if (frame.type === "tool_approval") loom.send({ type: "answer", id: "1", call_id: frame.call_id, approved: true });
    const form = formIn(frame);
    if (form) loom.send({ type: "answer", id: "1", interaction_id: form.interaction_id, values: { name: "Ann", email: "ann@example.com" } });
  });
  assert.deepEqual(loom.answered, ["submitted", "approved"]);
  assert.deepEqual([frames[0].type, frames[0].message, end.type], ["run_start", "weather in Paris?", "run_end"]);
  assert.ok(end.reply.length > 0 && text.replaceAll(/\s/g, "").endsWith(end.reply.replaceAll(/\s/g, "")));
  assert.ok(frames.some(({ type }) => type === "tool_approval") && frames.some(({ type }) => type === "tool_end"));
  const all = [...frames, end];
  assert.deepEqual(all.map(({ event_id }) => event_id), all.map((_, index) => index + 1), "ids have no gap");
  assert.ok(all.every(({ session_id }) => session_id === "loom-1"));
  const nodes = frames.filter(({ type }) => type === "node_enter" || type === "node_exit");
  nodes.forEach(({ type, node_id }, at) => {
    if (type === "node_exit") assert.deepEqual([nodes[at - 1].type, nodes[at - 1].node_id], ["node_enter", node_id]);
  });
  loom.close();
}

/** Pings, nonsense and several runs over one socket; none disturbs another. */
export async function loomSocketStaysOpen(address) {
  const loom = await LoomSocket.open(address);
  loom.send({ type: "ping", id: 7 });
  assert.deepEqual(await loom.next(), { type: "pong", id: 7 });
  for (const wrong of ["{", "[]", '"run"', "{}", '{"type":"dance","id":"x"}', '{"type":"run","message":"hi"}', '{"type":"run","id":"x","agent":"demo"}', '{"type":"run","id":"x","message":"hi","agent":"nobody"}', '{"type":"cancel","id":"x"}', '{"type":"answer","id":"x","approved":true}', '{"type":"answer","approved":true}']) {
    loom.send(wrong);
    const { type, error } = await loom.next();
    assert.equal(type, "error", wrong);
    assert.ok(error.length > 0);
  }
  loom.send({ type: "run", id: "fails", message: "hi", agent: "failing" });
  const { end } = await loom.run("fails");
  assert.deepEqual([end.type, end.stop_reason], ["run_end", "error"]);
  loom.close();
}

/** A cancel ends a run with a reply; closing the socket ends none. */
export async function loomCancels(address) {
  const first = await LoomSocket.open(address);
  first.send({ type: "run", id: "a", message: "go", agent: "endless", thread_id: "loom-left" });
  const { event } = await first.next();
  assert.equal(event.type, "run_start");
  first.close();
  const status = async () => (await (await fetch(`${address}/v1/runs/${event.run_id}`)).json()).status;
  assert.equal(await status(), "running", "leaving is not stopping");
  await fetch(`${address}/v1/runs/${event.run_id}/cancel`, { method: "POST" });

  const second = await LoomSocket.open(address);
  second.send({ type: "run", id: "b", message: "go", agent: "endless" });
  let asked = false;
  const { end } = await second.run("b", ({ type }) => {
    if (asked || type !== "message_chunk") return;
    asked = true;
    second.send({ type: "cancel", id: "b" });
  });
  assert.deepEqual([end.type, end.stop_reason], ["run_end", "cancelled"]);
  second.close();
}
