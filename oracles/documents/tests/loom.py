"""Loom's document, played by a receiver in plain Python that merges and sorts as its §7.2 says."""

import json

from client import equal


class Receiver:
    """Removes duplicates by `event_id`, or keeps the order of lines where there is none."""

    def __init__(self):
        self.sessions = {}

    def take(self, frame):
        lines = self.sessions.setdefault(frame.get("session_id"), {})
        lines.setdefault(frame.get("event_id", len(lines)), frame)

    def frames(self, session):
        return [frame for _, frame in sorted(self.sessions[session].items())]


def turn(session, run, words, first):
    """One round of a session, with its envelope."""
    node = {"session_id": session, "node_id": f"run-think-{run}"}
    return [
        {"session_id": session, "event_id": first, "type": "run_start", "run_id": run, "message": "问", "agent": "react"},
        {**node, "event_id": first + 1, "type": "node_enter", "id": "think"},
        {**node, "event_id": first + 2, "type": "message_chunk", "content": words, "id": "think"},
        {**node, "event_id": first + 3, "type": "node_exit", "id": "think", "result": "Ok"},
        {**node, "event_id": first + 4, "reply": words},
    ]


def several_rounds_are_drawn_correctly(server):
    sent = turn("py-rounds", "py-rounds-1", "first", 1) + turn("py-rounds", "py-rounds-2", "second", 6)
    server.push("/v1/threads/py-rounds/events?dialect=loom", sent)
    receiver = Receiver()
    for frame in server.frames("/v1/threads/py-rounds/events?dialect=loom&follow=false"):
        receiver.take(frame)
    drawn = receiver.frames("py-rounds")
    equal([frame["reply"] for frame in drawn if "reply" in frame], ["first", "second"])
    payload = lambda frame: {name: value for name, value in frame.items() if name not in ("session_id", "node_id", "event_id")}
    equal([payload(frame) for frame in drawn], [payload(frame) for frame in sent])


def streams_without_event_id_are_read(server):
    sent = [{name: value for name, value in frame.items() if name != "event_id"} for frame in turn("py-no-id", "py-no-id-1", "words", 1)]
    server.push("/v1/threads/py-no-id/events?dialect=loom", sent)
    frames = server.frames("/v1/runs/py-no-id-1/events?dialect=loom&follow=false")
    equal([frame["event_id"] for frame in frames], [1, 2, 3, 4, 5])
    equal(frames[-1]["reply"], "words")


def older_streams_are_accepted(server):
    answer = server.push(
        "/v1/runs/py-older/events",
        [
            {"type": "node_enter", "id": "think"},
            {"type": "message_chunk", "content": "old", "id": "think"},
            {"type": "node_exit", "id": "think", "result": "Ok"},
            {"reply": "old"},
        ],
    )
    equal(answer["accepted"], 4)
    equal(json.loads(server.read("/v1/runs/py-older", "application/json"))["status"], "completed")


def lines_end_with_a_line_feed_and_hold_none(server):
    words = "one\ntwo\r\nthree\u2028four"
    server.push("/v1/runs/py-lines/events?dialect=loom", [{"type": "message_chunk", "content": words, "id": "agent"}, {"reply": words}])
    body = server.read("/v1/runs/py-lines/events?dialect=loom&follow=false")
    assert body.endswith(b"\n") and b"\r" not in body, body
    frames = [json.loads(line) for line in body.split(b"\n")[:-1]]
    equal(frames[-1]["reply"], words)
