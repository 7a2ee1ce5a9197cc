"""GET /metrics over HTTP, on a loopback address. Its clients cost little: few at a time, for a short time, and one text for all."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

from broker.config.listeners import Endpoint, NamedAddress
from broker.server.listener import Listener

if TYPE_CHECKING:
    from prometheus_client.core import Metric

# What remains to be done in the thread.
Later: TypeAlias = "Callable[[], Sequence[Metric]]"
PATH = "/metrics"
# Further clients wait in the backlog.
MOST_CONNECTIONS = 16
BACKLOG = 16
HEAD_BYTES = 8192
# From the accept to the last byte that the client reads.
CONNECTION_S = 10.0
# Clients that ask within this time get the same text.
FRESH_S = 1.0

logger = logging.getLogger("broker.server")


class MetricsServer:
    """Serves the metrics that `collect` returns. They become text in a thread: that takes a while if there are many."""

    def __init__(
        self,
        endpoint: Endpoint,
        collect: Callable[[], Coroutine[Any, Any, tuple[Sequence[Metric], Later]]],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        """Bind the address. Raises CannotListen."""
        self._listener = Listener(NamedAddress("METRICS", "PLAINTEXT", endpoint), None, None)
        self._collect = collect
        self._loop = loop
        self.bound = self._listener.bound
        self.open: set[_HttpConnection] = set()
        self._text: asyncio.Task[bytes] | None = None
        self._stale_at = 0.0

    def start(self) -> None:
        make = cast("Any", lambda: _HttpConnection(self, self._loop))
        self._listener.start(make, lambda: MOST_CONNECTIONS - len(self.open), self._loop, BACKLOG)

    def close(self) -> None:
        self._listener.close()
        for connection in list(self.open):
            connection.abort()
        if self._text is not None:
            self._text.cancel()

    def forget(self, connection: _HttpConnection) -> None:
        self.open.discard(connection)
        self._listener.resume()

    def text(self) -> asyncio.Task[bytes]:
        """The metrics of now, or of a moment ago."""
        if self._text is None or (self._text.done() and self._loop.time() >= self._stale_at):
            self._text = self._loop.create_task(self._render())
        return self._text

    async def _render(self) -> bytes:
        try:
            families, later = await self._collect()
            return await self._loop.run_in_executor(None, generate_latest, _Collected(families, later))
        finally:
            self._stale_at = self._loop.time() + FRESH_S

    def is_own(self, host: str) -> bool:
        """Whether a browser has meant this server, rather than a name that someone has pointed at this machine."""
        name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0].lower()
        is_number = name.startswith("127.") and name.replace(".", "").isdigit()
        return is_number or name in ("localhost", "::1", self.bound.host)


class _Collected:
    """What generate_latest takes for a registry."""

    def __init__(self, families: Sequence[Metric], later: Later) -> None:
        self._families, self._later = families, later

    def collect(self) -> Sequence[Metric]:
        return [*self._families, *self._later()]


class _HttpConnection(asyncio.Protocol):
    """One request and its answer; then the connection closes."""

    def __init__(self, server: MetricsServer, loop: asyncio.AbstractEventLoop) -> None:
        self._server = server
        self._loop = loop
        self._head = b""
        self._is_answered = False
        self._transport: asyncio.Transport
        self._deadline: asyncio.TimerHandle

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._server.open.add(self)
        self._deadline = self._loop.call_later(CONNECTION_S, self.abort)

    def data_received(self, data: bytes) -> None:
        if self._is_answered:
            return
        self._head += data
        if b"\r\n\r\n" in self._head:
            self._is_answered = True
            self._transport.pause_reading()
            self._respond(self._head.partition(b"\r\n\r\n")[0].decode("latin-1"))
        elif len(self._head) > HEAD_BYTES:
            self._is_answered = True
            self._send("431 Request Header Fields Too Large", b"the request is too long\n")

    def connection_lost(self, error: Exception | None) -> None:
        self._deadline.cancel()
        self._server.forget(self)

    def abort(self) -> None:
        self._transport.abort()

    def _respond(self, head: str) -> None:
        first, *lines = head.split("\r\n")
        method, _, rest = first.partition(" ")
        path = rest.partition(" ")[0].partition("?")[0]
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        if "host" in headers and not self._server.is_own(headers["host"]):
            self._send("403 Forbidden", b"the host is not that of this machine\n")
        elif method not in ("GET", "HEAD"):
            self._send("405 Method Not Allowed", b"only GET is allowed\n")
        elif path != PATH:
            self._send("404 Not Found", b"there is only /metrics\n")
        else:
            self._server.text().add_done_callback(lambda task: self._send_text(task, has_body=method == "GET"))

    def _send_text(self, task: asyncio.Task[bytes], *, has_body: bool) -> None:
        if task.cancelled():
            self.abort()
        elif (error := task.exception()) is not None:
            logger.error("cannot collect the metrics", exc_info=error)
            self._send("500 Internal Server Error", b"the log of the broker says why\n")
        else:
            self._send("200 OK", task.result(), CONTENT_TYPE_PLAIN_0_0_4, has_body=has_body)

    def _send(self, status: str, body: bytes, kind: str = "text/plain", *, has_body: bool = True) -> None:
        if self._transport.is_closing():
            return
        head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        self._transport.write(head.encode() + (body if has_body else b""))
        self._transport.close()
