"""A small blocking client of the Kafka protocol for tests: one connection, one thread, no retries."""

from __future__ import annotations

import socket
from typing import Any, TypeVar

from broker.protocol.api_keys import APIS
from broker.protocol.codec import decode
from broker.protocol.frames import decode_response, request_frame
from broker.protocol.wire_types import Message

M = TypeVar("M", bound=Message)


class ConnectionClosed(Exception):
    """The broker has closed the connection."""


class WireClient:
    """Sends requests and reads answers in order. No read blocks longer than `timeout_s`."""

    def __init__(self, address: tuple[str, int], *, client_id: str | None = "test", timeout_s: float = 10) -> None:
        self.socket = socket.create_connection(address, timeout=timeout_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._client_id = client_id
        self._received = b""
        self._next_correlation_id = 1
        self._awaited: list[tuple[int, type[Message], int]] = []

    def __enter__(self) -> WireClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    def frame(self, request: Message, version: int | None = None, *, answered: bool = True) -> bytes:
        """Encode a request. `receive` expects its answer, unless `answered` is false."""
        version = newest(request) if version is None else version
        correlation_id = self._next_correlation_id
        self._next_correlation_id += 1
        if answered:
            self._awaited.append((correlation_id, APIS[request.API_KEY].response, version))
        return request_frame(request, version, correlation_id, self._client_id)

    def send(self, request: Message, version: int | None = None) -> None:
        self.socket.sendall(self.frame(request, version))

    def send_bytes(self, data: bytes) -> None:
        self.socket.sendall(data)

    def receive(self) -> Any:
        """Read the next answer; answers arrive in the order of the requests."""
        correlation_id, response, version = self._awaited.pop(0)
        found, message = decode_response(response, self.receive_frame(), version)
        assert found == correlation_id, "an answer came out of order"
        return message

    def ask(self, request: Message, version: int | None = None) -> Any:
        self.send(request, version)
        return self.receive()

    def receive_frame(self) -> bytes:
        size = int.from_bytes(self._read(4), "big")
        return self._read(size)

    def receive_as(self, response: type[M], version: int) -> M:
        """Read the answer to a request that was sent as bytes, and skip its header."""
        return decode(response, self.receive_frame(), version, 4)

    def is_closed(self) -> bool:
        """Whether the broker closes the connection without sending another byte."""
        try:
            return self._received == b"" and self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def is_quiet(self, seconds: float = 0.05) -> bool:
        """Whether nothing arrives for a while."""
        timeout = self.socket.gettimeout()
        self.socket.settimeout(seconds)
        try:
            self._received += self.socket.recv(1)
        except TimeoutError:
            return self._received == b""
        finally:
            self.socket.settimeout(timeout)
        return False

    def _read(self, count: int) -> bytes:
        while len(self._received) < count:
            try:
                chunk = self.socket.recv(65536)
            except ConnectionResetError:
                chunk = b""
            if not chunk:
                raise ConnectionClosed
            self._received += chunk
        found, self._received = self._received[:count], self._received[count:]
        return found


def newest(request: Message) -> int:
    return request.VERSIONS.stop - 1
