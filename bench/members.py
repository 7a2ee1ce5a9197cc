"""Virtual members: raw sockets in one selector loop, to measure how long a group takes to form."""

from __future__ import annotations

import collections
import contextlib
import selectors
import socket
import struct
import time

from bench import wire
from bench.wire import Refused
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.heartbeat import HeartbeatRequest
from broker.protocol.wire_types import Message

HEARTBEAT_S = 0.1
# More connects at once than the listen queue holds (Kafka's default is 50) would wait a second for a retry.
ACCEPTED_TOGETHER = 32


class VirtualMember:
    """One member's side of the group protocol, without blocking."""

    def __init__(self, sock: socket.socket, group: str) -> None:
        self.sock, self.group = sock, group
        self.member_id, self.generation = "", -1
        self.stable_in = -1
        self.next_beat = 0.0
        self._asked: Message | None = None
        self._pending = bytearray()

    def join(self) -> None:
        self.stable_in = -1
        self._send(wire.join_request(self.group, self.member_id))

    def heartbeat(self) -> None:
        if self._asked is None:
            self._send(HeartbeatRequest(group_id=self.group, generation_id=self.generation, member_id=self.member_id))

    def receive(self) -> None:
        """Read available bytes; a complete response leads to the next request."""
        chunk = self.sock.recv(1 << 18)
        if not chunk:
            raise Refused("the broker closed a member's connection")
        self._pending += chunk
        if len(self._pending) < 4:
            return
        end = 4 + struct.unpack_from(">i", self._pending)[0]
        if len(self._pending) < end:
            return
        answer, asked = bytes(self._pending[4:end]), self._asked
        del self._pending[:end]
        self._asked = None
        assert asked is not None
        self._follow(asked, wire.answer_to(asked, answer))

    def _follow(self, asked: Message, answer) -> None:  # type: ignore[no-untyped-def]
        code, kind = answer.error_code, type(asked).__name__
        if kind == "JoinGroupRequest" and code in (0, ErrorCode.MEMBER_ID_REQUIRED):
            self.member_id = answer.member_id
            if code:
                self.join()
                return
            self.generation = answer.generation_id
            members = [m.member_id for m in answer.members] if answer.leader == self.member_id else []
            self._send(wire.sync_request(self.group, self.member_id, self.generation, members))
        elif kind == "SyncGroupRequest" and code == 0:
            self.stable_in = self.generation
        elif code in (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION):
            self.join()
        elif code == ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""
            self.join()
        elif code:
            raise Refused(f"{kind}: error {code}")

    def _send(self, message: Message) -> None:
        self._asked = message
        self.sock.sendall(wire.frame(message))


def join_time_s(address: tuple[str, int], count: int, group: str, within_s: float = 60.0) -> float:
    """Seconds from the first JoinGroup until all members have an assignment in one generation."""
    with contextlib.ExitStack() as sockets:
        members = []
        for number in range(1, count + 1):
            sock = sockets.enter_context(wire.connect(address))
            members.append(VirtualMember(sock, group))
            if number % ACCEPTED_TOGETHER == 0:
                wire.answers(sock)
        with selectors.DefaultSelector() as selector:
            for member in members:
                selector.register(member.sock, selectors.EVENT_READ, member)
            return _until_together(selector, members, within_s)


def _until_together(selector: selectors.BaseSelector, members: list[VirtualMember], within_s: float) -> float:
    began = time.perf_counter()
    for member in members:
        member.join()
    stable: collections.Counter[int] = collections.Counter()
    heartbeats: collections.deque[tuple[float, VirtualMember]] = collections.deque()
    while True:
        now = time.perf_counter()
        if now - began > within_s:
            together = max(stable.values(), default=0)
            raise Refused(f"{together} of {len(members)} members were in one generation within {within_s:.0f} s")
        while heartbeats and heartbeats[0][0] <= now:
            due, member = heartbeats.popleft()
            if member.stable_in >= 0 and member.next_beat == due:
                member.heartbeat()
                _schedule(heartbeats, member, now)
        wait = max(heartbeats[0][0] - now, 0) if heartbeats else 1.0
        for key, _ in selector.select(wait):
            member = key.data
            before = member.stable_in
            member.receive()
            if member.stable_in != before:
                stable[before] -= 1
                stable[member.stable_in] += 1
                if member.stable_in >= 0:
                    _schedule(heartbeats, member, time.perf_counter())
                    if stable[member.stable_in] == len(members):
                        return time.perf_counter() - began


def _schedule(heartbeats: collections.deque[tuple[float, VirtualMember]], member: VirtualMember, now: float) -> None:
    # All wait equally long, so the queue is ordered by time.
    member.next_beat = now + HEARTBEAT_S
    heartbeats.append((member.next_beat, member))
