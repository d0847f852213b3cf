"""A back end of EasyFlow's chat, written from its document: it asks a form, and goes on when the values are posted."""

import json

SCHEMA = {
    "type": "object",
    "required": ["age", "email"],
    "properties": {"age": {"type": "number", "title": "年龄"}, "email": {"type": "string", "title": "邮箱", "format": "email"}},
}


def sse(conversation, domain, type, payload, name="message", **more):
    envelope = {"protocol": "easyflow-chat", "version": "1.1", "domain": domain, "type": type, "conversation_id": conversation, "payload": payload, **more}
    return f"event: {name}\ndata: {json.dumps(envelope, ensure_ascii=False)}\n\n"


def chat(request):
    """Yields the events up to the form, where the conversation is suspended; or an error."""
    conversation = request["conversationId"]
    yield sse(conversation, "system", "status", {"state": "running"})
    if request["prompt"] == "fail":
        error = {"code": "MODEL_CONFIG_INVALID", "message": "模型配置错误", "retryable": False, "detail": {}}
        yield sse(conversation, "system", "error", error, name="error")
        return
    yield sse(conversation, "llm", "thinking", {"delta": "分析用户需求"}, message_id="msg_1", index=0)
    yield sse(conversation, "llm", "message", {"delta": "请填写"}, message_id="msg_1", index=1)
    ui = {"submit_text": "继续", "cancel_text": "取消"}
    form = {"form_id": "user_info_form", "title": "补充信息", "description": "请填写以下信息以继续", "schema": SCHEMA, "ui": ui}
    yield sse(conversation, "interaction", "form_request", form, message_id="msg_1")
    yield sse(conversation, "system", "status", {"state": "suspended"})


def form(answer):
    """Yields what follows the answer."""
    conversation = answer["conversation_id"]
    yield sse(conversation, "system", "status", {"state": "resumed"})
    told = f"年龄 {answer['values'].get('age')}"
    yield sse(conversation, "llm", "message", {"delta": told}, message_id="msg_2", index=0)
    meta = {"prompt_tokens": 1234, "completion_tokens": 456, "latency_ms": 2300}
    yield sse(conversation, "system", "done", {}, name="done", meta=meta)
