"""Many requests over a few connections, with several in flight on each. Responses are in the order of requests."""

from __future__ import annotations

import collections
import contextlib
import selectors
import socket
import struct
from collections.abc import Sequence
from typing import Any

from bench import wire
from bench.wire import Refused
from broker.protocol.wire_types import Message

CONNECTIONS = 8
# So few small requests and responses cannot fill the buffers of either side.
IN_FLIGHT = 32
LONGEST_WAIT_S = 30.0


def ask_all(address: tuple[str, int], messages: Sequence[Message]) -> list[Any]:
    """The decoded responses. Refused if none arrives for `LONGEST_WAIT_S`."""
    answers: list[Any] = [None] * len(messages)
    unsent = collections.deque(range(len(messages)))
    with contextlib.ExitStack() as open_, selectors.DefaultSelector() as selector:
        for _ in range(min(CONNECTIONS, len(messages))):
            line = _Line(open_.enter_context(wire.connect(address)))
            selector.register(line.sock, selectors.EVENT_READ, line)
            line.fill(unsent, messages)
        left = len(messages)
        while left:
            ready = selector.select(LONGEST_WAIT_S)
            if not ready:
                raise Refused(f"{left} of {len(messages)} requests had no response within {LONGEST_WAIT_S:.0f} s")
            for key, _ in ready:
                for index, answer in key.data.receive():
                    answers[index] = wire.answer_to(messages[index], answer)
                    left -= 1
                key.data.fill(unsent, messages)
    return answers


class _Line:
    """One connection; `waiting` has the numbers of its requests in flight, oldest first."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.waiting: collections.deque[int] = collections.deque()
        self._pending = bytearray()

    def fill(self, unsent: collections.deque[int], messages: Sequence[Message]) -> None:
        framed = b""
        while unsent and len(self.waiting) < IN_FLIGHT:
            index = unsent.popleft()
            framed += wire.frame(messages[index])
            self.waiting.append(index)
        if framed:
            self.sock.sendall(framed)

    def receive(self) -> list[tuple[int, bytes]]:
        chunk = self.sock.recv(1 << 18)
        if not chunk:
            raise Refused("the broker closed the connection")
        self._pending += chunk
        whole, at = [], 0
        while len(self._pending) - at >= 4:
            end = at + 4 + struct.unpack_from(">i", self._pending, at)[0]
            if len(self._pending) < end:
                break
            whole.append((self.waiting.popleft(), bytes(self._pending[at + 4 : end])))
            at = end
        del self._pending[:at]
        return whole
