"""The back ends of the documents that speak HTTP, on a port of their own. They end with their standard input."""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import agio
import easyflow
import social_app
import streaming_engine

ROUTES = {
    "/agent/stream": agio.stream,
    "/api/chat": streaming_engine.chat,
    "/api/v1/bot/chat": easyflow.chat,
    "/api/v1/bot/form": easyflow.form,
    "/social-app": social_app.run,
}


class Handler(BaseHTTPRequestHandler):
    """Hands each request to the back end of its path, and sends what that yields as it comes."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        url = urlsplit(self.path)
        length = int(self.headers.get("Content-Length", 0))
        body = json.loads(self.rfile.read(length) or b"{}")
        parameters = {name: values[0] for name, values in parse_qs(url.query).items()}
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for text in ROUTES[url.path]({**body, **parameters}):
            chunk = text.encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, *_):
        """Says nothing."""


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
threading.Thread(target=server.serve_forever, daemon=True).start()
print(f"http://127.0.0.1:{server.server_port}", flush=True)
sys.stdin.read()
