"""A schema registry for tests: the documented REST API over HTTP, on a free port of this machine."""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from google.protobuf.descriptor_pb2 import FileDescriptorProto


class SchemaRegistry:
    """`register` adds versions to subjects. `asked` has the paths of all requests. `user_info` or `token` is demanded, if given."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.user_info: str | None = None
        self.token: str | None = None
        self.asked: list[str] = []
        self.fails_with: int | None = None
        self._schemas: dict[int, dict[str, Any]] = {}
        self._subjects: dict[str, list[int]] = {}

    def register(
        self, subject: str, kind: str, schema: object, references: list[tuple[str, str, int]] | None = None
    ) -> int:
        """Add a version; the id of its schema. `references` are name, subject, version. Protobuf files are descriptors."""
        number = 100 + len(self._schemas)
        row: dict[str, Any] = {"schema": schema if isinstance(schema, FileDescriptorProto) else json.dumps(schema)}
        if kind != "AVRO":
            row["schemaType"] = kind
        if references:
            row["references"] = [{"name": name, "subject": of, "version": version} for name, of, version in references]
        self._schemas[number] = row
        self._subjects.setdefault(subject, []).append(number)
        return number

    def guid(self, number: int) -> str:
        return f"00000000-0000-0000-0000-{number:012x}"

    def answer(self, path: str, authorization: str | None) -> tuple[int, dict[str, Any] | list[str]]:
        self.asked.append(path)
        if self.fails_with is not None:
            return self.fails_with, {"error_code": 50001, "message": "Error in the backend data store"}
        if self.user_info is not None:
            wanted = "Basic " + base64.b64encode(self.user_info.encode()).decode()
            if authorization != wanted:
                return 401, {"error_code": 401, "message": "Unauthorized"}
        if self.token is not None and authorization != f"Bearer {self.token}":
            return 401, {"error_code": 401, "message": "Unauthorized"}
        parts = urlsplit(path)
        serialized = parse_qs(parts.query).get("format") == ["serialized"]
        match [unquote(part) for part in parts.path.split("/")[1:]]:
            case ["subjects"]:
                return 200, sorted(self._subjects)
            case ["schemas", "ids", text] if int(text) in self._schemas:
                return 200, self._row(int(text), serialized)
            case ["schemas", "ids", _]:
                return 404, {"error_code": 40403, "message": "Schema not found"}
            case ["schemas", "guids", text] if int(text[-12:], 16) in self._schemas:
                return 200, self._row(int(text[-12:], 16), serialized)
            case ["subjects", subject, "versions", version] if subject in self._subjects:
                numbers = self._subjects[subject]
                index = len(numbers) if version == "latest" else int(version)
                if not 0 < index <= len(numbers):
                    return 404, {"error_code": 40402, "message": "Version not found."}
                number = numbers[index - 1]
                return 200, {"subject": subject, "version": index, "id": number, **self._row(number, serialized)}
            case ["subjects", subject, "versions", _]:
                return 404, {"error_code": 40401, "message": f"Subject '{subject}' not found."}
        return 404, {"error_code": 404, "message": "HTTP 404 Not Found"}

    def _row(self, number: int, serialized: bool) -> dict[str, Any]:
        row = self._schemas[number]
        schema = row["schema"]
        if isinstance(schema, FileDescriptorProto):
            text = base64.b64encode(schema.SerializeToString()).decode() if serialized else f"// {schema.name}"
            return {**row, "schema": text}
        return row


@contextmanager
def schema_registry(tls: ssl.SSLContext | None = None) -> Iterator[SchemaRegistry]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            status, body = found.answer(self.path, self.headers.get("Authorization"))
            content = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *words: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            """A client that does not trust the certificate hangs up."""

    server = Server(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    found = SchemaRegistry(f"http{'s' if tls else ''}://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
