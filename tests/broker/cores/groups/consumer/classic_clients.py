"""Members of the classic protocol on a simulated core, in groups of either type. They assign as leaders, and sync, as consumers do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from broker.protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    decode_assignment,
    decode_subscription,
    encode_blob,
)
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.heartbeat import HeartbeatRequest
from broker.protocol.messages.join_group import JoinGroupRequest
from broker.protocol.messages.leave_group import LeaveGroupRequest
from broker.protocol.messages.sync_group import SyncGroupRequest
from tests.broker.cores.groups.consumer.clients import Names
from tests.broker.cores.groups.world import World

SESSION_MS, REBALANCE_MS = 30_000, 60_000


def subscription(
    topics: Sequence[str] = ("orders",),
    owned: Mapping[str, Sequence[int]] | None = None,
    version: int = 3,
    rack: str | None = None,
) -> bytes:
    rows = [
        ConsumerProtocolSubscription.TopicPartition(topic=topic, partitions=list(partitions))
        for topic, partitions in (owned or {}).items()
    ]
    return encode_blob(ConsumerProtocolSubscription(topics=list(topics), owned_partitions=rows, rack_id=rack), version)


def assignment(owned: Mapping[str, Sequence[int]], user_data: bytes | None = None, version: int = 3) -> bytes:
    rows = [
        ConsumerProtocolAssignment.TopicPartition(topic=topic, partitions=list(partitions))
        for topic, partitions in owned.items()
    ]
    return encode_blob(ConsumerProtocolAssignment(assigned_partitions=rows, user_data=user_data), version)


def read(blob: bytes) -> Names:
    rows = decode_assignment(blob).assigned_partitions if blob else []
    return {row.topic: sorted(row.partitions) for row in rows}


@dataclass
class Classic:
    """A member that does one thing in each turn: it joins, syncs or sends a heartbeat. An eager one gives up everything to join."""

    world: World
    name: str
    topics: tuple[str, ...] = ("orders",)
    protocols: tuple[str, ...] = ("range",)
    instance: str | None = None
    is_cooperative: bool = False
    group: str = "g"
    member_id: str = ""
    generation: int = -1
    owned: Names = field(default_factory=dict)
    errors: list[int] = field(default_factory=list)  # every one that it got
    ticket: int | None = None  # of a request that is parked
    must_join: bool = True
    protocol: str = ""

    def turn(self) -> None:
        if self.ticket is not None:
            self._answered()
        elif self.must_join:
            self._ask(self.join_request(), 7)
        else:
            self._beaten(self.beat())

    def join_request(self, **fields: Any) -> JoinGroupRequest:
        metadata = subscription(self.topics, self.owned)
        asked: dict[str, Any] = {
            "group_id": self.group,
            "session_timeout_ms": SESSION_MS,
            "rebalance_timeout_ms": REBALANCE_MS,
            "member_id": self.member_id,
            "group_instance_id": self.instance,
            "protocol_type": "consumer",
            "protocols": [JoinGroupRequest.Protocol(name=name, metadata=metadata) for name in self.protocols],
        }
        return JoinGroupRequest(**{**asked, **fields})

    def sync_request(self, **fields: Any) -> SyncGroupRequest:
        asked: dict[str, Any] = {
            "group_id": self.group,
            "generation_id": self.generation,
            "member_id": self.member_id,
            "group_instance_id": self.instance,
            "protocol_type": "consumer",
            "protocol_name": self.protocol,
            "assignments": [],
        }
        return SyncGroupRequest(**{**asked, **fields})

    def beat(self, **fields: Any) -> int:
        asked: dict[str, Any] = {
            "group_id": self.group,
            "generation_id": self.generation,
            "member_id": self.member_id,
            "group_instance_id": self.instance,
        }
        return int(self.world.answer(HeartbeatRequest(**{**asked, **fields}), 4, self.name).error_code)

    def leave(self) -> int:
        leaving = LeaveGroupRequest.Member(member_id=self.member_id, group_instance_id=self.instance)
        answer = self.world.answer(LeaveGroupRequest(group_id=self.group, members=[leaving]), 5, self.name)
        self.lose()
        self.member_id = ""
        return int(answer.members[0].error_code)

    def lose(self) -> None:
        """Own nothing and begin again."""
        self.owned, self.generation, self.must_join, self.ticket = {}, -1, True, None

    def _ask(self, request: JoinGroupRequest | SyncGroupRequest, version: int) -> None:
        if isinstance(request, JoinGroupRequest) and not self.is_cooperative:
            self.owned = {}
            for protocol in request.protocols:
                protocol.metadata = subscription(self.topics)
        self.ticket = self.world.ask(request, version, self.name)
        self._answered()

    def _answered(self) -> None:
        assert self.ticket is not None
        answer = self.world.answers.get(self.ticket)
        if answer is None:
            return
        self.ticket = None
        error = answer.error_code
        if error == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
        elif error:
            self._beaten(error)
        elif hasattr(answer, "members"):
            self._joined(answer)
        else:
            got = read(answer.assignment)
            has_lost = any(set(partitions) - set(got.get(topic, ())) for topic, partitions in self.owned.items())
            self.owned, self.must_join = got, has_lost

    def _joined(self, answer: Any) -> None:
        self.member_id, self.generation, self.protocol = answer.member_id, answer.generation_id, answer.protocol_name
        shares = self._shares(answer.members) if answer.members else {}
        rows = [SyncGroupRequest.Assignment(member_id=one, assignment=share) for one, share in shares.items()]
        self._ask(self.sync_request(assignments=rows), 5)

    def _shares(self, members: Sequence[Any]) -> dict[str, bytes]:
        """Each partition goes to the members in turn, but to no one while another member owns it, who is to give it up first."""
        owners = {
            (row.topic, partition): member.member_id
            for member in members
            for row in decode_subscription(member.metadata).owned_partitions
            for partition in row.partitions
        }
        out: dict[str, dict[str, list[int]]] = {member.member_id: {} for member in members}
        for topic in sorted({topic for member in members for topic in decode_subscription(member.metadata).topics}):
            for partition in range(self.world.topics.get(topic, 0)):
                member_id = members[partition % len(members)].member_id
                if owners.get((topic, partition), member_id) == member_id:
                    out[member_id].setdefault(topic, []).append(partition)
        return {member_id: assignment(owned) for member_id, owned in out.items()}

    def _beaten(self, error: int) -> None:
        if not error:
            return
        self.errors.append(error)
        self.must_join = True
        if error == ErrorCode.REBALANCE_IN_PROGRESS:
            return
        self.lose()
        if error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            self.member_id = ""


def stable(*clients: Classic, rounds: int = 8) -> None:
    """Turns until all have joined and synced."""
    for _ in range(rounds):
        for client in clients:
            client.turn()
    assert not any(client.must_join or client.ticket is not None for client in clients)
