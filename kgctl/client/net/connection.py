"""A blocking connection to one broker. A deadline bounds every wait."""

from __future__ import annotations

import itertools
import math
import select
import socket
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from broker.protocol.frames import correlation_id_of
from broker.protocol.messages.api_versions import ApiVersionsResponse
from broker.protocol.wire_types import Message
from kgctl.client.net import wire
from kgctl.client.net.diagnosis import explain
from kgctl.client.net.errors import KgctlError, NotKafka, TimedOut, TlsFailed
from kgctl.client.net.steps import Endpoint

if TYPE_CHECKING:
    from kgctl.client.net.tracing import RequestTrace

# How much longer than its deadline a read may wait.
_LATE_SECONDS = 0.05


class Connection:
    """Brokers answer requests in order, so several may be sent before the first answer is read.

    Deadlines are readings of time.monotonic(). Any error closes the connection. For one thread. `stream` is a connected
    socket, with TLS or without. `troubleshoot` may know more about an error: it gets the error, and whether the broker has
    answered a request other than ApiVersions. With `is_read_only`, requests that change something raise ReadOnly.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        stream: socket.socket,
        client_id: str,
        troubleshoot: Callable[[Exception, bool], KgctlError | None] = lambda error, is_served: None,
    ) -> None:
        self.endpoint = endpoint
        self.is_read_only = False
        self.trace: RequestTrace | None = None
        self._client_id = client_id
        self._troubleshoot = troubleshoot
        self._correlation_ids = itertools.count(1)
        self._waiting: deque[tuple[int, type[Message], int]] = deque()
        self._arrived: deque[tuple[int, Message]] = deque()
        self._is_served = False
        self._renew_at = math.inf
        self._renew: Callable[[Connection, float], None] = _never
        self._socket = stream
        # poll() sees records of TLS, not what they contain: `has_ended` reads to find out.
        self.is_encrypted = hasattr(stream, "pending")
        self._head = b""
        self._late_error: OSError | None = None

    @property
    def in_flight(self) -> int:
        """The number of requests without an answer."""
        return len(self._waiting) + len(self._arrived)

    @property
    def closed(self) -> bool:
        return self._socket.fileno() == -1

    def has_ended(self) -> bool:
        """Whether the other side has closed a connection on which nothing is in flight, as a broker that restarts does."""
        if self._waiting or self._arrived:
            return False
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        # Without a request no answer arrives: what plaintext has to read is the end.
        return bool(poll.poll(0)) and not (self.is_encrypted and self._has_only_tls())

    def renew_at(self, moment: float, renew: Callable[[Connection, float], None]) -> None:
        """Call `renew` with this connection and a deadline before the first request after that moment."""
        self._renew_at, self._renew = moment, renew

    def send(self, request: Message, version: int, response: type[Message] | None, deadline: float) -> int:
        """Send one request and return its correlation id. `response` is None for a request without an answer (acks=0)."""
        if time.monotonic() >= self._renew_at:
            self._renew_at = math.inf
            self._renew(self, deadline)
        return self._send(request, version, response, deadline)

    def receive(self, deadline: float) -> tuple[int, Message]:
        """The next answer: its correlation id and response."""
        return self._arrived.popleft() if self._arrived else self._receive(deadline)

    def exchange(self, request: Message, version: int, response: type[Message], deadline: float) -> Message:
        """Send a request and wait for its answer. Answers to earlier requests stay for `receive`."""
        number = self._send(request, version, response, deadline)
        while True:
            found, message = self._receive(deadline)
            if found == number:
                return message
            self._arrived.append((found, message))

    def close(self) -> None:
        self._socket.close()

    def detach(self) -> socket.socket:
        """The socket, for an owner that reads and writes it without this object. No answer is outstanding."""
        assert not self._waiting
        return self._socket

    def _send(self, request: Message, version: int, response: type[Message] | None, deadline: float) -> int:
        if self.is_read_only:
            from kgctl.client.net.read_only import check_reads

            check_reads(request)
        number = next(self._correlation_ids)
        frame = wire.request_frame(request, version, number, self._client_id)
        if response is not None:
            self._waiting.append((number, response, version))
        if self.trace is not None:
            self.trace.sent(number, request, version, sum(map(len, frame)), is_answered=response is not None)
        try:
            for part in frame:
                self._socket.settimeout(remaining(deadline))
                self._socket.sendall(part)  # type: ignore[arg-type]
        except (OSError, TimedOut) as error:
            raise self._failure(error) from error
        return number

    def _receive(self, deadline: float) -> tuple[int, Message]:
        expected, response, version = self._waiting[0]
        try:
            if self._late_error is not None:
                raise self._late_error
            size = int.from_bytes(self._read_size(deadline), "big", signed=True)
            wire.check_size(size)
            frame = self._read(size, deadline)
            if correlation_id_of(frame) != expected:
                raise NotKafka("the answer has an unexpected correlation id")
            message = wire.read_response(response, version, frame)
        except (OSError, EOFError, TimedOut, NotKafka, TlsFailed) as error:
            raise self._failure(error) from error
        self._waiting.popleft()
        if self.trace is not None:
            self.trace.received(expected, 4 + size)
        self._is_served = self._is_served or response is not ApiVersionsResponse
        return expected, message

    def _has_only_tls(self) -> bool:
        """Whether a readable socket has records of TLS itself only, such as session tickets."""
        self._socket.settimeout(0)
        try:
            self._head += self._socket.recv(4 - len(self._head))
        except OSError as error:
            if _would_block(error):
                return True
            self._late_error = error
        return False

    def _failure(self, error: Exception) -> KgctlError:
        self.close()
        found = self._troubleshoot(error, self._is_served) or explain(self.endpoint, error)
        if self.trace is not None:
            self.trace.failed(found)
        return found

    def _read_size(self, deadline: float) -> bytes:
        head, self._head = self._head, b""
        return head + self._read(4 - len(head), deadline)

    def _read(self, size: int, deadline: float) -> bytes:
        buffer = bytearray(size)
        view, at, limit = memoryview(buffer), 0, 0.0
        while at < size:
            left = remaining(deadline)
            if not left <= limit < left + _LATE_SECONDS:  # a system call, so not for each piece
                limit = left
                self._socket.settimeout(left)
            count = self._socket.recv_into(view[at:])
            if not count:
                raise EOFError
            at += count
        return bytes(buffer)


def remaining(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimedOut("no time left")
    return left


def _would_block(error: OSError) -> bool:
    import ssl

    return isinstance(error, ssl.SSLWantReadError | ssl.SSLWantWriteError | BlockingIOError)


def _never(connection: Connection, deadline: float) -> None:
    raise AssertionError("this connection has nothing to renew")
