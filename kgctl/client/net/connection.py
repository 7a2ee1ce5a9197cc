"""A blocking connection to one broker. A deadline bounds every wait."""

from __future__ import annotations

import itertools
import socket
import time
from collections import deque

from broker.protocol.frames import correlation_id_of
from broker.protocol.wire_types import Message
from kgctl.client.net import wire
from kgctl.client.net.errors import NotKafka, Refused, TimedOut, Unreachable
from kgctl.client.net.steps import Endpoint


class Connection:
    """Brokers answer requests in order, so several may be sent before the first answer is read.

    Deadlines are readings of time.monotonic(). Any error closes the connection. For one thread.
    """

    def __init__(self, endpoint: Endpoint, deadline: float, client_id: str) -> None:
        self.endpoint = endpoint
        self._client_id = client_id
        self._correlation_ids = itertools.count(1)
        self._waiting: deque[tuple[int, type[Message], int]] = deque()
        self._socket = _connect(endpoint, deadline)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    @property
    def in_flight(self) -> int:
        """The number of requests without an answer."""
        return len(self._waiting)

    @property
    def closed(self) -> bool:
        return self._socket.fileno() == -1

    def fileno(self) -> int:
        """For poll(): readable once an answer starts to arrive."""
        return self._socket.fileno()

    def send(self, request: Message, version: int, response: type[Message] | None, deadline: float) -> int:
        """Send one request and return its correlation id. `response` is None for a request without an answer (acks=0)."""
        number = next(self._correlation_ids)
        frame = wire.request_frame(request, version, number, self._client_id)
        if response is not None:
            self._waiting.append((number, response, version))
        try:
            for part in frame:
                self._socket.settimeout(_remaining(deadline))
                self._socket.sendall(part)  # type: ignore[arg-type]
        except (OSError, TimedOut) as error:
            self.close()
            raise _explain(self.endpoint, error) from error
        return number

    def receive(self, deadline: float) -> tuple[int, Message]:
        """The next answer: its correlation id and response."""
        expected, response, version = self._waiting[0]
        try:
            size = int.from_bytes(self._read(4, deadline), "big", signed=True)
            wire.check_size(size)
            frame = self._read(size, deadline)
            if correlation_id_of(frame) != expected:
                raise NotKafka("the answer has an unexpected correlation id")
            message = wire.read_response(response, version, frame)
        except (OSError, EOFError, TimedOut, NotKafka) as error:
            self.close()
            raise _explain(self.endpoint, error) from error
        self._waiting.popleft()
        return expected, message

    def close(self) -> None:
        self._socket.close()

    def _read(self, size: int, deadline: float) -> bytes:
        pieces = bytearray()
        while len(pieces) < size:
            self._socket.settimeout(_remaining(deadline))
            piece = self._socket.recv(min(size - len(pieces), 1 << 20))
            if not piece:
                raise EOFError
            pieces += piece
        return bytes(pieces)


def _connect(endpoint: Endpoint, deadline: float) -> socket.socket:
    try:
        return socket.create_connection(endpoint, timeout=_remaining(deadline))
    except (OSError, TimedOut) as error:
        raise _explain(endpoint, error, connecting=True) from error


def _remaining(deadline: float) -> float:
    remaining = deadline - time.monotonic()
    if remaining <= 0:
        raise TimedOut("no time left")
    return remaining


def _explain(endpoint: Endpoint, error: Exception, connecting: bool = False) -> TimedOut | Unreachable:
    if isinstance(error, NotKafka):
        return NotKafka(f"{endpoint}: {error}")
    if isinstance(error, TimeoutError | TimedOut):
        if connecting:
            return Unreachable(f"{endpoint}: could not connect in time")
        return TimedOut(f"{endpoint}: no answer in time")
    if isinstance(error, socket.gaierror):
        return Unreachable(f"{endpoint}: unknown host name {endpoint.host!r}")
    if isinstance(error, ConnectionRefusedError):
        return Refused(f"{endpoint}: connection refused; nothing listens there")
    if isinstance(error, EOFError | ConnectionResetError | BrokenPipeError):
        return Unreachable(f"{endpoint}: the other side closed the connection")
    return Unreachable(f"{endpoint}: {getattr(error, 'strerror', None) or error}")
