"""Agio's document, played by a client in plain Python: the sample of the document over HTTP."""

import json

from client import equal


def events_of(response):
    """Reads the `data: ` lines of a stream."""
    for line in response:
        line = line.decode()
        if line.startswith("data: "):
            yield json.loads(line[len("data: ") :])


def a_python_client_reads_the_stream(server):
    text, tools, duration = "", [], None
    with server.post("/agent/stream", {"query": "你好"}) as response:
        for event in events_of(response):
            if event["type"] == "text_delta":
                text += event["data"]["content"]
            elif event["type"] == "tool_call_started":
                tools.append(event["data"]["tool_name"])
            elif event["type"] == "run_completed":
                duration = event["data"]["metrics"]["duration"]
    equal([text, tools, duration], ["Hello, 你好", ["get_weather"], 5.14])


def run_ids_tell_runs_apart(server):
    runs = []
    for query in ["one", "two"]:
        with server.post("/agent/stream", {"query": query, "thread_id": "agio-apart"}) as response:
            runs.append({event["run_id"] for event in events_of(response)})
    equal([len(run) for run in runs], [1, 1])
    assert runs[0] != runs[1], runs


def the_older_text_api_still_works(server):
    with server.post("/agent/stream", {"query": "hi"}) as response:
        run = next(events_of(response))["run_id"]
        response.read()
    text = server.read(f"/v1/runs/{run}/events?dialect=text", "text/plain").decode()
    equal(text, "Hello, 你好")
