"""A core with a simulated clock, a log to restart from, and every request and answer by ticket."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from broker.cores.core import Effects, RequestContext
from broker.cores.groups.classic.group import ClassicGroup
from broker.cores.groups.coordinator import Coordinator
from broker.cores.groups.counted_topics import CountedTopics
from broker.cores.groups.events import GroupEvent
from broker.cores.groups.records import GenerationFloor, OffsetCommitRecord, StateRecord, from_row
from broker.cores.groups.settings import GroupSettings
from broker.protocol.codec import decode, encode
from broker.protocol.messages.heartbeat import HeartbeatRequest
from broker.protocol.messages.join_group import JoinGroupRequest
from broker.protocol.messages.leave_group import LeaveGroupRequest
from broker.protocol.messages.offset_commit import OffsetCommitRequest
from broker.protocol.messages.offset_fetch import OffsetFetchRequest
from broker.protocol.messages.sync_group import SyncGroupRequest
from broker.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from broker.protocol.wire_types import Message
from tests.harness.group_core import Pending, handle, store, unloaded
from tests.harness.share_state import MemoryShareState

WALL_MS = 1_000_000_000_000
QUICK = GroupSettings(group_initial_rebalance_delay_ms=0, offsets_retention_check_interval_ms=1 << 40)


@dataclass
class World(CountedTopics):
    settings: GroupSettings = QUICK
    topics: dict[str, int] = field(default_factory=lambda: {"orders": 3, "clicks": 1})
    configs: dict[str, dict[str, str]] = field(default_factory=dict)  # those set for groups
    share_state: MemoryShareState = field(default_factory=MemoryShareState)
    now_ms: int = 1_000
    records: list[StateRecord] = field(default_factory=list)  # every one emitted
    events: list[GroupEvent] = field(default_factory=list)  # every one emitted
    rows: dict[bytes, tuple[bytes, int]] = field(default_factory=dict)  # the compacted log
    floors: dict[str, int] = field(default_factory=dict)
    pending: Pending = field(default_factory=dict)
    versions: dict[int, int] = field(default_factory=dict)  # ticket -> api version
    answers: dict[int, Any] = field(default_factory=dict)  # ticket -> response
    wake_at: int | None = None
    loads: list[str] = field(default_factory=list)
    ids: int = 0

    def __post_init__(self) -> None:
        self.start()

    def counts(self) -> Mapping[str, int]:
        return self.topics

    @property
    def wall_ms(self) -> int:
        return WALL_MS + self.now_ms

    # ---- life cycle --------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start a new core from the log; parked requests are lost."""
        self.core = Coordinator(
            self.settings, self._new_id, self, lambda group: self.configs.get(group, {}), lambda: self.share_state
        )
        groups, offsets = self.stored()
        for record in groups:
            self.core.apply(record)
        for group_id, generation in self.floors.items():
            self.core.apply(GenerationFloor(group_id, generation))
        for pending in self.pending.values():
            self.core.apply(pending)
        self.core.expect_offsets(offsets)
        self.take(self.core.resume(self.now_ms, self.wall_ms))

    def stored(self) -> tuple[list[StateRecord], dict[str, list[StateRecord]]]:
        """The group records of the log, and the offset records of each group."""
        groups: list[StateRecord] = []
        offsets: dict[str, list[StateRecord]] = {}
        for key, (value, timestamp_ms) in self.rows.items():
            record = from_row(key, value, timestamp_ms)
            assert record is not None
            if isinstance(record, OffsetCommitRecord):
                offsets.setdefault(record.group_id, []).append(record)
            else:
                groups.append(record)
        return groups, offsets

    def take(self, effects: Effects) -> None:
        self.events += effects.events
        for record in effects.state_records:
            self._append(record)
        for reply in effects.replies:
            assert reply.ticket in self.versions, f"an answer to the unknown ticket {reply.ticket}"
            assert reply.ticket not in self.answers, f"{reply.ticket} is answered twice"
            version = self.versions[reply.ticket]
            self.answers[reply.ticket] = decode(type(reply.response), encode(reply.response, version), version)
        self.wake_at = effects.wake_at_ms

    def run_due(self) -> None:
        while self.wake_at is not None and self.wake_at <= self.now_ms:
            self.take(self.core.advance(self.now_ms, self.wall_ms))

    def let_pass(self, ms: int) -> None:
        """Advance the clock and wake the core at its deadlines."""
        until_ms = self.now_ms + ms
        while self.wake_at is not None and self.wake_at <= until_ms:
            self.now_ms = max(self.now_ms, self.wake_at)
            self.take(self.core.advance(self.now_ms, self.wall_ms))
        self.now_ms = until_ms

    def ask(self, request: Message, version: int, client: str = "c1") -> int:
        """Send a request and return its ticket. Timers that are due run after it."""
        ticket = len(self.versions) + 1
        self.versions[ticket] = version
        request = decode(type(request), encode(request, version), version)
        self.load(unloaded(self.core, request))
        context = RequestContext(ticket, version, client, "/127.0.0.1", "User:ANONYMOUS", self.wall_ms)
        self.take(handle(self.core, request, context, self.now_ms))
        self.run_due()
        return ticket

    def end_transaction(
        self, producer_id: int, *groups: str, is_commit: bool, epoch: int = 0, limit: int = 1_000
    ) -> bool:
        """End the transaction for these groups, by default for all; whether more is left."""
        effects, more = self.core.end_transaction(
            producer_id,
            epoch,
            lambda group_id: not groups or group_id in groups,
            limit,
            self.now_ms,
            self.wall_ms,
            is_commit=is_commit,
        )
        self.take(effects)
        return more

    def load(self, group_ids: Iterable[str]) -> None:
        for group_id in group_ids:
            self.loads.append(group_id)
            self.core.load(group_id, self.stored()[1].get(group_id, []))

    def _append(self, record: StateRecord) -> None:
        self.records.append(record)
        store(record, self.rows, self.floors, self.pending)

    def _new_id(self) -> str:
        self.ids += 1
        return str(self.ids)

    # ---- requests ------------------------------------------------------------------------------------------------

    def answer(self, request: Message, version: int, client: str = "c1") -> Any:
        """The answer to a request that is answered at once."""
        return self.answers[self.ask(request, version, client)]

    def group(self, group_id: str = "g") -> ClassicGroup:
        found = self.core.group(group_id)
        assert found is not None
        return found

    def generation(self, members: int, group_id: str = "g", version: int = 3, **fields: Any) -> list[str]:
        """Bring this many dynamic members into a Stable group; their ids, the leader first."""
        tickets = [self.ask(join("", group_id, **fields), version, f"c{n}") for n in range(1, members + 1)]
        # A later member interrupts the generation of the earlier ones, which join again with their ids.
        for _ in range(members):
            for ticket in tickets:
                joined = self.answers.get(ticket)
                if joined is not None and joined.generation_id < self.group(group_id).generation + 1:
                    self.ask(join(joined.member_id, group_id, **fields), version)
        ids = list(self.group(group_id).members)
        for member_id in ids[1:] + ids[:1]:
            shares = {other: f"for {other}" for other in ids} if member_id == ids[0] else {}
            self.ask(sync(member_id, self.group(group_id).generation, shares, group_id), 3)
        assert self.group(group_id).state.value == "Stable"
        return ids


def join(member_id: str = "", group_id: str = "g", **fields: Any) -> JoinGroupRequest:
    protocols = fields.pop("protocols", {"range": b"one"})
    defaults: dict[str, Any] = {
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 60_000,
        "protocol_type": "consumer",
    }
    return JoinGroupRequest(
        group_id=group_id,
        member_id=member_id,
        protocols=[JoinGroupRequest.Protocol(name=name, metadata=metadata) for name, metadata in protocols.items()],
        **{**defaults, **fields},
    )


def sync(
    member_id: str, generation: int, shares: dict[str, str] | None = None, group_id: str = "g", **fields: Any
) -> SyncGroupRequest:
    return SyncGroupRequest(
        group_id=group_id,
        generation_id=generation,
        member_id=member_id,
        assignments=[
            SyncGroupRequest.Assignment(member_id=member, assignment=share.encode())
            for member, share in (shares or {}).items()
        ],
        **fields,
    )


def heartbeat(member_id: str, generation: int, group_id: str = "g", **fields: Any) -> HeartbeatRequest:
    return HeartbeatRequest(group_id=group_id, generation_id=generation, member_id=member_id, **fields)


def leave(*member_ids: str, group_id: str = "g", **fields: Any) -> LeaveGroupRequest:
    return LeaveGroupRequest(
        group_id=group_id, members=[LeaveGroupRequest.Member(member_id=member_id, **fields) for member_id in member_ids]
    )


def commit(
    offsets: dict[tuple[str, int], int], member_id: str = "", generation: int = -1, group_id: str = "g", **fields: Any
) -> OffsetCommitRequest:
    metadata = fields.pop("metadata", "")
    topics: dict[str, list[OffsetCommitRequest.Partition]] = {}
    for (topic, partition), offset in offsets.items():
        topics.setdefault(topic, []).append(
            OffsetCommitRequest.Partition(
                partition_index=partition, committed_offset=offset, committed_metadata=metadata
            )
        )
    return OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        topics=[OffsetCommitRequest.Topic(name=name, partitions=partitions) for name, partitions in topics.items()],
        **fields,
    )


def commit_in_transaction(
    offsets: dict[tuple[str, int], int], producer_id: int = 7, group_id: str = "g", **fields: Any
) -> TxnOffsetCommitRequest:
    metadata = fields.pop("metadata", "")
    topics: dict[str, list[TxnOffsetCommitRequest.Partition]] = {}
    for (topic, partition), offset in offsets.items():
        topics.setdefault(topic, []).append(
            TxnOffsetCommitRequest.Partition(
                partition_index=partition, committed_offset=offset, committed_metadata=metadata
            )
        )
    return TxnOffsetCommitRequest(
        transactional_id=f"t{producer_id}",
        group_id=group_id,
        producer_id=producer_id,
        producer_epoch=fields.pop("epoch", 0),
        topics=[TxnOffsetCommitRequest.Topic(name=name, partitions=partitions) for name, partitions in topics.items()],
        **fields,
    )


def fetch_all(group_id: str = "g") -> OffsetFetchRequest:
    return OffsetFetchRequest(group_id=group_id, topics=None)


def fetched(response: Any) -> dict[tuple[str, int], int]:
    """The offsets of an OffsetFetch answer (up to v7)."""
    return {
        (topic.name, partition.partition_index): partition.committed_offset
        for topic in response.topics
        for partition in topic.partitions
    }
