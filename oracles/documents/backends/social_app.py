"""A back end of social-app, written from its document: it sends its events with the figures that stay inside."""

import json


def run(request):
    """Yields the events of a run, as its runtime produces them."""
    ids = {"threadId": request["threadId"], "runId": request["runId"]}
    figures = {"inputTokens": 10, "outputTokens": 20, "cost": 0.5, "latencyMs": 99, "model": "secret-model"}

    def event(type, **fields):
        return f"event: {type}\ndata: {json.dumps({'type': type, **ids, **fields}, ensure_ascii=False)}\n\n"

    call = {"messageId": "msg_1", "toolCallId": "call_1", "toolCallName": "search", "stage": "worker"}
    yield event("RUN_STARTED")
    yield event("STEP_STARTED", stepName="router")
    yield event("STEP_FINISHED", stepName="router")
    yield event("STEP_STARTED", stepName="worker")
    yield event("TOOL_CALL_START", **call)
    yield event("TOOL_CALL_ARGS", **call, args={"query": "茶"})
    yield event("TOOL_CALL_END", **call)
    yield event(
        "TOOL_CALL_RESULT",
        messageId="msg_2",
        role="tool",
        stage="worker",
        tool_name="search",
        tool_call_id="call_1",
        tool_call_args={"query": "茶"},
        status="success",
        result="id=7 status=ok count=1",
        error=None,
    )
    yield event(
        "TEXT_MESSAGE_END",
        messageId="msg_3",
        role="assistant",
        stage="worker",
        status="success",
        answer="找到一条结果",
        key_points=["一条"],
        result_type="execution_report",
        suggested_actions=["打开"],
        error=None,
        ui_schema={"type": "card", "model": "compact"},
        **figures,
    )
    yield event("STEP_FINISHED", stepName="worker")
    yield event("RUN_FINISHED")
