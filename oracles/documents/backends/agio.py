"""A back end of Agio, written from its document: the event model, its SSE form, and the FastAPI sample's generator."""

import json
import uuid
from datetime import datetime, timezone


class AgentEvent:
    """The unified event: type, run, time, payload, metadata."""

    def __init__(self, type, run_id, data, metadata=None):
        self.type = type
        self.run_id = run_id
        self.timestamp = datetime.now(timezone.utc)
        self.data = data
        self.metadata = metadata or {}

    def to_sse(self):
        timestamp = self.timestamp.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        event = {"type": self.type, "run_id": self.run_id, "timestamp": timestamp, "data": self.data, "metadata": self.metadata}
        return f"data: {json.dumps(event)}\n\n"


def stream(request):
    """Yields the events of a run; the query chooses what happens in it."""
    query = request["query"]
    run_id = str(uuid.uuid4())

    def event(type, **data):
        return AgentEvent(type, run_id, data).to_sse()

    yield event("run_started", query=query)
    if query == "fail":
        yield event("error", error="错误信息", error_type="ValueError")
        yield event("run_failed", error="错误信息", error_type="ValueError")
        return
    yield event("step_started", step=1)
    yield event("text_delta", content="Hello", step=1)
    yield event("text_delta", content=", 你好", step=1)
    yield event("tool_call_started", tool_name="get_weather", tool_call_id="call_123", arguments={"city": "Beijing"}, step=1)
    yield event(
        "tool_call_completed",
        tool_name="get_weather",
        tool_call_id="call_123",
        result="The weather in Beijing is sunny",
        duration=0.123,
        step=1,
    )
    yield event("usage_update", prompt_tokens=100, completion_tokens=50, total_tokens=150, step=1)
    yield event("step_completed", step=1)
    metrics = {"duration": 5.14, "steps_count": 1, "tool_calls_count": 1, "total_tokens": 150, "response_latency": 1071}
    yield event("run_completed", response="Hello, 你好", metrics=metrics)
