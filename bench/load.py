"""The raw load generator: sends the same encoded request repeatedly and requires equal responses.

It only compares bytes of responses, so that it uses little of the CPU that it shares with the broker.
"""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass

from bench import wire
from bench.wire import Refused
from broker.protocol.messages.heartbeat import HeartbeatRequest
from broker.protocol.messages.offset_commit import OffsetCommitRequest
from broker.protocol.wire_types import Message

TOPIC = "bench-load"
CHUNK_BYTES = 1 << 16
LONGEST_WAIT_S = 20.0


class Line:
    """One connection with its request and the expected response."""

    def __init__(self, sock: socket.socket, message: Message) -> None:
        self.sock, self.request = sock, wire.frame(message)
        answer = wire.ask_raw(sock, self.request)
        if codes := _error_codes(wire.answer_to(message, answer[4:])):
            raise Refused(f"{type(message).__name__}: errors {codes}")
        self.answered = 0
        self._size = len(answer)
        self._phase = 0  # received bytes of an incomplete response
        self._expected = memoryview(answer * (CHUNK_BYTES // len(answer) + 2))

    def send(self, count: int) -> None:
        # At most 64 small requests are in flight: they fit in the socket buffer.
        self.sock.sendall(self.request * count)

    def take(self, received: memoryview) -> int:
        """The number of responses that these bytes complete."""
        if received != self._expected[self._phase : self._phase + len(received)]:
            raise Refused("a response differs from the first one")
        done, self._phase = divmod(self._phase + len(received), self._size)
        self.answered += done
        return done


def commit_lines(address: tuple[str, int], connections: int, tag: str) -> list[Line]:
    """Connections of members, each the only one of its group, that commit one offset."""

    def message(group: str, member: str, generation: int) -> OffsetCommitRequest:
        at = OffsetCommitRequest.Partition(partition_index=0, committed_offset=42, committed_metadata="")
        topic = OffsetCommitRequest.Topic(name=TOPIC, partitions=[at])
        return OffsetCommitRequest(
            group_id=group, generation_id_or_member_epoch=generation, member_id=member, topics=[topic]
        )

    return [Line(*_joined(address, f"{tag}-{n}", message)) for n in range(connections)]


def heartbeat_lines(address: tuple[str, int], connections: int, tag: str) -> list[Line]:
    """Connections of members, each the only one of its group, that send heartbeats."""

    def message(group: str, member: str, generation: int) -> HeartbeatRequest:
        return HeartbeatRequest(group_id=group, generation_id=generation, member_id=member)

    return [Line(*_joined(address, f"{tag}-{n}", message)) for n in range(connections)]


@dataclass(frozen=True)
class Rate:
    per_s: float
    answers: int
    seconds: float


def run(lines: Sequence[Line], in_flight: int, seconds: float) -> Rate:
    """Keep `in_flight` requests in flight on each connection for the given time."""
    for line in lines:
        line.answered = 0
    began = time.perf_counter()
    if len(lines) == 1:
        _one(lines[0], in_flight, began + seconds)
    else:
        _many(lines, in_flight, began + seconds)
    took = time.perf_counter() - began
    answers = sum(line.answered for line in lines)
    return Rate(answers / took, answers, took)


def _one(line: Line, in_flight: int, until: float) -> None:
    """A blocking loop: a selector would need a second system call per response."""
    buffer = memoryview(bytearray(CHUNK_BYTES))
    line.sock.settimeout(LONGEST_WAIT_S)
    line.send(in_flight)
    left = in_flight
    while left:
        size = line.sock.recv_into(buffer)
        if not size:
            raise Refused("the broker closed the connection")
        done = line.take(buffer[:size])
        if time.perf_counter() < until:
            if done:
                line.send(done)
        else:
            left -= done
            until = 0.0


def _many(lines: Sequence[Line], in_flight: int, until: float) -> None:
    buffer = memoryview(bytearray(CHUNK_BYTES))
    with selectors.DefaultSelector() as selector:
        for line in lines:
            selector.register(line.sock, selectors.EVENT_READ, line)
            line.send(in_flight)
        left, sending = len(lines) * in_flight, True
        while left:
            ready = selector.select(LONGEST_WAIT_S)
            if not ready:
                raise Refused(f"no response within {LONGEST_WAIT_S:.0f} s")
            sending = sending and time.perf_counter() < until
            for key, _ in ready:
                line = key.data
                size = line.sock.recv_into(buffer)
                if not size:
                    raise Refused("the broker closed the connection")
                done = line.take(buffer[:size])
                if sending and done:
                    line.send(done)
                elif not sending:
                    left -= done


def close(lines: Sequence[Line]) -> None:
    for line in lines:
        line.sock.close()


def _joined(address: tuple[str, int], group: str, message) -> tuple[socket.socket, Message]:  # type: ignore[no-untyped-def]
    sock = wire.connect(address)
    return sock, message(group, *wire.join_alone(sock, group))


def _error_codes(answer: Message) -> list[int]:
    if isinstance(code := getattr(answer, "error_code", None), int):
        return [code] if code else []
    topics = getattr(answer, "topics", [])
    return [p.error_code for topic in topics for p in topic.partitions if p.error_code]
