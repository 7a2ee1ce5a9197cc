"""The membership of a worker in its group, as a classic consumer."""

from __future__ import annotations

from typing import Any

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.heartbeat import HeartbeatRequest
from broker.protocol.messages.join_group import JoinGroupRequest
from broker.protocol.messages.sync_group import SyncGroupRequest
from tests.harness.simulation.clock import MS
from tests.harness.simulation.transactions.scripts import RETRY_US, Answering, Ask, Lost, Script, Sleep

SESSION_MS, REBALANCE_MS = 6_000, 10_000


class Outdated(Exception):
    """The member must join again."""


class Membership:
    def __init__(self, group_id: str, partitions: int) -> None:
        self._group_id = group_id
        self._partitions = partitions
        self.forget()

    def forget(self) -> None:
        self.member_id = ""
        self.generation = -1

    def join(self) -> Answering:
        """The partitions that the member is assigned in a new generation."""
        while True:
            joined = yield from self._ask(self._join_request(), 9)
            if joined is None or joined.error_code not in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
                self.forget()
                yield Sleep(200 * MS)
                continue
            self.member_id = joined.member_id
            if joined.error_code:
                continue
            self.generation = joined.generation_id
            synced = yield from self._ask(self._sync_request(joined), 3)
            if synced is not None and not synced.error_code:
                return [int(text) for text in synced.assignment.decode().split(",") if text]
            if synced is not None and synced.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
                self.forget()

    def heartbeat(self) -> Script:
        """Raise Outdated if the group has another generation, or is about to."""
        request = HeartbeatRequest(group_id=self._group_id, generation_id=self.generation, member_id=self.member_id)
        answer = yield from self._ask(request, 3)
        if answer is None or not answer.error_code:
            return
        if answer.error_code != ErrorCode.REBALANCE_IN_PROGRESS:
            self.forget()
        raise Outdated

    def _join_request(self) -> JoinGroupRequest:
        return JoinGroupRequest(
            group_id=self._group_id,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            member_id=self.member_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequest.Protocol(name="range", metadata=b"")],
        )

    def _sync_request(self, joined: Any) -> SyncGroupRequest:
        members = sorted(member.member_id for member in joined.members)
        return SyncGroupRequest(
            group_id=self._group_id,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            assignments=[
                SyncGroupRequest.Assignment(
                    member_id=member,
                    assignment=",".join(map(str, range(place, self._partitions, len(members)))).encode(),
                )
                for place, member in enumerate(members)
            ],
        )

    def _ask(self, request: Any, version: int) -> Answering:
        """The answer; None if it was lost."""
        try:
            return (yield Ask(request, version))
        except Lost:
            yield Sleep(RETRY_US)
            return None
