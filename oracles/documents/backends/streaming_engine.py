"""A back end with a StreamingEngine, written from the document (§2): it stamps metadata, times and sequence numbers."""

import json
import time


class StreamingEngine:
    def __init__(self, request_id):
        self.request_id = request_id
        self.sequence = 0
        self.start_time = time.time()

    def emit(self, type, data, **metadata):
        stamped = {"request_id": self.request_id, "timestamp": int(time.time()), "sequence": self.sequence, **metadata}
        self.sequence += 1
        return "data: " + json.dumps({"type": type, "data": data, "metadata": stamped}, ensure_ascii=False) + "\n\n"

    def emit_session_start(self, session_id):
        return self.emit("session_start", {"session_id": session_id, "request_id": self.request_id})

    def emit_thinking(self, content, stage=None):
        return self.emit("thinking", {"content": content, **({"stage": stage} if stage else {})})

    def emit_tool_call_start(self, tool_id, tool_name, description, arguments):
        return self.emit("tool_call_start", {"tool_id": tool_id, "tool_name": tool_name, "description": description, "arguments": arguments})

    def emit_tool_call_end(self, tool_id, status, result=None, error=None, duration_ms=None):
        data = {"tool_id": tool_id, "status": status}
        if result is not None:
            data["result"] = result
        if error is not None:
            data["error"] = error
        return self.emit("tool_call_end", data, **({} if duration_ms is None else {"duration_ms": duration_ms}))

    def emit_content(self, content, format="markdown", is_complete=False):
        return self.emit("content", {"content": content, "format": format, "is_complete": is_complete})

    def emit_data(self, data_type, data, metadata=None):
        return self.emit("data", {"data_type": data_type, "data": data, **({"metadata": metadata} if metadata else {})})

    def emit_error(self, error_type, message, details=None, recoverable=False):
        return self.emit("error", {"error_type": error_type, "message": message, "details": details or {}, "recoverable": recoverable})

    def emit_session_end(self, status, summary=None):
        return self.emit("session_end", {"status": status, **({"summary": summary} if summary else {})})


def chat(request):
    """Yields the events of a request; its content chooses what happens."""
    engine = StreamingEngine("req_of_the_back_end")
    yield engine.emit_session_start(request["session_id"])
    if request["content"] == "fail":
        yield engine.emit_error("execution", "用户可见的错误信息", {"stack_trace": "…", "context": {}})
        yield engine.emit_session_end("error")
        return
    yield engine.emit_thinking("思考内容片段", "reasoning")
    yield engine.emit_tool_call_start("tool_1", "display_table", "展示表格数据", {"table_name": "销售数据", "columns": ["产品", "销量"]})
    yield engine.emit_data("dataframe", {"name": "销售数据", "columns": ["产品", "销量"], "rows": [["茶", 3]]}, {"description": "数据描述"})
    yield engine.emit_tool_call_end("tool_1", "success", {"rows": 1}, duration_ms=150)
    yield engine.emit_content("最终答案", "markdown")
    yield engine.emit_content("内容片段", "markdown", True)
    yield engine.emit_session_end("completed", {"total_tokens": 1500, "duration_ms": 3000, "tool_calls": 1})
