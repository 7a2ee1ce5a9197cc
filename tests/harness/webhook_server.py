"""A server for webhooks: it keeps every request, and gives scripted answers."""

from __future__ import annotations

import contextlib
import json
import ssl
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any, NamedTuple

CUT = 0
SILENT = -1


class Request(NamedTuple):
    path: str
    headers: Mapping[str, str]
    content: Any


class WebhookServer:
    """`answers` are statuses, the last of which repeats; CUT closes the connection, SILENT never answers."""

    def __init__(self, *answers: int, context: ssl.SSLContext | None = None, retry_after: str = "") -> None:
        self.requests: list[Request] = []
        self.url = ""
        self._answers, self._context, self._retry_after = list(answers), context, retry_after
        self._end = Event()

    @contextlib.contextmanager
    def serving(self) -> Iterator[WebhookServer]:
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                content = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                hook.requests.append(Request(self.path, dict(self.headers.items()), content))
                status = hook._answers.pop(0) if len(hook._answers) > 1 else hook._answers[0]
                if status == SILENT:
                    hook._end.wait()
                if status <= 0:
                    self.close_connection = True
                    return
                self.send_response(status)
                self.send_header("Location", f"{hook.url}/elsewhere")
                if hook._retry_after:
                    self.send_header("Retry-After", hook._retry_after)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None: ...

        class Quiet(ThreadingHTTPServer):
            def handle_error(self, *_: Any) -> None: ...

        server = Quiet(("127.0.0.1", 0), Handler)
        if self._context is not None:
            server.socket = self._context.wrap_socket(server.socket, server_side=True)
        self.url = f"{'https' if self._context else 'http'}://127.0.0.1:{server.server_port}/hooks/s3cret"
        thread = Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._end.set()
            server.shutdown()
            server.server_close()
            thread.join(5)
