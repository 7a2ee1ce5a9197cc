"""A token endpoint of OAuth for tests: an HTTPS server with scripted answers."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any, NamedTuple
from urllib.parse import parse_qs


class Asked(NamedTuple):
    authorization: str
    form: dict[str, list[str]]


class TokenEndpoint:
    """An HTTPS server with scripted answers: (status, body) each; the last one repeats."""

    def __init__(self, context: ssl.SSLContext | None, *answers: tuple[int, bytes]) -> None:
        self.asked: list[Asked] = []
        self._answers, self._context = list(answers), context
        self.url = ""

    @contextlib.contextmanager
    def serving(self) -> Iterator[TokenEndpoint]:
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                endpoint.asked.append(Asked(self.headers["Authorization"], parse_qs(body)))
                answers = endpoint._answers
                status, answer = answers.pop(0) if len(answers) > 1 else answers[0]
                self.send_response(status)
                self.send_header("Location", "https://elsewhere.example/")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: Any) -> None: ...

        class Quiet(HTTPServer):
            def handle_error(self, *_: Any) -> None: ...

        server = Quiet(("127.0.0.1", 0), Handler)
        if self._context is not None:
            server.socket = self._context.wrap_socket(server.socket, server_side=True)
        self.url = f"{'https' if self._context else 'http'}://127.0.0.1:{server.server_port}/token"
        thread = Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()
            thread.join(5)
