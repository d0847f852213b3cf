"""Requests for the tests in Python, with the standard library alone."""

import json
import urllib.error
import urllib.parse
import urllib.request


class Server:
    def __init__(self, address):
        self.address = address

    def open(self, path, body=None, headers=None, timeout=30):
        """Makes a request; with a body it is a POST."""
        data = body.encode() if isinstance(body, str) else body
        return urllib.request.urlopen(urllib.request.Request(self.address + path, data=data, headers=headers or {}), timeout=timeout)

    def post(self, path, body):
        """Posts a JSON body and gives the open response."""
        return self.open(path, json.dumps(body), {"Content-Type": "application/json"})

    def push(self, path, frames):
        """Writes frames as NDJSON."""
        lines = "".join((frame if isinstance(frame, str) else json.dumps(frame)) + "\n" for frame in frames)
        with self.open(path, lines, {"Content-Type": "application/x-ndjson"}) as response:
            return json.load(response)

    def read(self, path, accept="application/x-ndjson"):
        """Reads a whole body."""
        with self.open(path, headers={"Accept": accept}) as response:
            return response.read()

    def frames(self, path):
        """Reads a body of NDJSON."""
        return [json.loads(line) for line in self.read(path).decode().split("\n") if line]


def equal(came, expected, what=""):
    """Fails with both values where they differ."""
    assert came == expected, f"{what}\nexpected: {json.dumps(expected, ensure_ascii=False)}\ncame:     {json.dumps(came, ensure_ascii=False)}"
