"""A Loom agent, written from its document: NDJSON on standard output, one frame a line."""

import json
import sys

start = json.loads(sys.stdin.readline())
session = start["thread_id"]
event_id = 0


def send(**frame):
    global event_id
    event_id += 1
    print(json.dumps({"session_id": session, "event_id": event_id, **frame}, ensure_ascii=False), flush=True)


send(type="run_start", message=start.get("message", ""), agent="react")
node = "run-think-1"
send(node_id=node, type="node_enter", id="think")
send(node_id=node, type="message_chunk", content="你好，", id="think")
if start.get("message") == "approve":
    send(node_id=node, type="tool_approval", call_id="call-1", name="delete_file", arguments={"path": "/tmp/x"})
    answer = json.loads(sys.stdin.readline())
    is_allowed = answer["decision"] == "approved"
    if is_allowed:
        send(node_id=node, type="tool_start", call_id="call-1", name="delete_file")
    send(node_id=node, type="tool_end", call_id="call-1", name="delete_file", result="gone" if is_allowed else "refused", is_error=not is_allowed)
send(node_id=node, type="message_chunk", content="世界", id="think")
send(node_id=node, type="node_exit", id="think", result="Ok")
send(node_id=node, reply="你好，世界")
