"""Drives a GroupMember with a scripted cluster: the test is the coordinator, the application and its listener."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from broker.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from broker.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from broker.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from broker.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from broker.protocol.wire_types import Message
from kgctl.client.consumer import reset_strategy
from kgctl.client.consumer.assignors.assignor import (
    Assignment,
    Assignor,
    ClusterView,
    RebalanceProtocol,
    Subscription,
    as_assignments,
)
from kgctl.client.consumer.assignors.wire import decode_subscription, encode_assignment, encode_subscription
from kgctl.client.consumer.group.calls import Call
from kgctl.client.consumer.group.member import GroupMember
from kgctl.client.consumer.group.settings import GroupSettings
from kgctl.client.consumer.group_metadata import ConsumerGroupMetadata
from kgctl.client.consumer.offset_and_metadata import OffsetAndMetadata
from kgctl.client.consumer.rebalance_listener import RebalanceListener
from kgctl.client.consumer.subscription import SubscriptionState
from kgctl.client.network.settings import NetworkSettings
from kgctl.model.topic_partition import TopicPartition
from tests.harness.client_script import Request, Script

TP0, TP1, OTHER = TopicPartition("test1", 0), TopicPartition("test1", 1), TopicPartition("test2", 0)
EAGER, COOPERATIVE = RebalanceProtocol.EAGER, RebalanceProtocol.COOPERATIVE
CALM = GroupSettings("group", auto_commit=False)


class Fixed(Assignor):
    """Assigns what the test says; by default every partition of the subscribed topics to the first member."""

    def __init__(self, protocols: Sequence[RebalanceProtocol] = (EAGER,), name: str = "fixed") -> None:
        self.name, self.protocols = name, protocols
        self.shares: Mapping[str, Collection[TopicPartition]] | None = None
        self.seen: list[tuple[ClusterView, dict[str, Subscription]]] = []
        self.assignments: list[Assignment] = []
        self.metadata: list[ConsumerGroupMetadata] = []
        self.raises: Exception | None = None

    def assign(self, cluster: ClusterView, members: Mapping[str, Subscription]) -> Mapping[str, Assignment]:
        self.seen.append((cluster, dict(members)))
        if self.shares is not None:
            return as_assignments(self.shares)
        first = min(members)
        topics = {topic for one in members.values() for topic in one.topics} & cluster.partition_counts.keys()
        everything = [partition for topic in sorted(topics) for partition in cluster.partitions(topic)]
        return as_assignments({member: everything if member == first else [] for member in members})

    def on_assignment(self, assignment: Assignment, metadata: ConsumerGroupMetadata) -> None:
        self.assignments.append(assignment)
        self.metadata.append(metadata)
        if self.raises is not None:
            raise self.raises


@dataclass
class Listener(RebalanceListener):
    """Notes its calls; `raises` by kind of call, once."""

    calls: list[tuple[str, tuple[TopicPartition, ...]]] = field(default_factory=list)
    raises: dict[str, BaseException] = field(default_factory=dict)

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        self._note("revoked", partitions)

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        self._note("assigned", partitions)

    def on_partitions_lost(self, partitions: Collection[TopicPartition]) -> None:
        self._note("lost", partitions)

    def _note(self, kind: str, partitions: Collection[TopicPartition]) -> None:
        self.calls.append((kind, tuple(partitions)))
        if kind in self.raises:
            raise self.raises.pop(kind)


class Play:
    """One consumer. Topics test1 and test2; both have one partition unless the test says otherwise."""

    def __init__(
        self,
        settings: GroupSettings = CALM,
        protocols: Sequence[RebalanceProtocol] = (EAGER,),
        partitions: dict[str, int] | None = None,
        assignors: Sequence[Assignor] | None = None,
        network: NetworkSettings | None = None,
        reset: reset_strategy.ResetStrategy = reset_strategy.EARLIEST,
    ) -> None:
        self.settings = settings
        self.script = Script(partitions=partitions or {"test1": 1, "test2": 1}, settings=network or NetworkSettings())
        self.assignor = Fixed(protocols)
        self.notes: list[str] = []
        self.subscription = SubscriptionState(reset)
        self.member = GroupMember(
            self.script.network,
            self.subscription,
            settings,
            assignors or [self.assignor],
            random.Random(1),
            self.notes.append,
        )
        self.script.participants.append(self.member)
        self.listener = Listener()

    # --- the application ---

    def subscribe(self, *topics: str) -> None:
        self.subscription.subscribe(topics or ("test1",), self.listener)
        self.member.subscription_changed(self.script.now_ms)
        self.script.turn()

    def assign(self, *partitions: TopicPartition) -> None:
        self.subscription.assign_from_user(partitions)
        self.member.subscription_changed(self.script.now_ms)
        self.script.turn()

    def poll(self) -> None:
        """A call of poll with time-out 0, as often as there is something to do."""
        self.script.turn()
        for _ in range(50):
            self.member.poll(self.script.now_ms)
            self.script.turn()
            self.run_calls()
            if not self.member.has_work(self.script.now_ms):
                return
        raise AssertionError("the member never comes to rest")

    def run_calls(self) -> None:
        while (call := self.next_call()) is not None:
            self.finish(call)

    def next_call(self) -> Call | None:
        return self.member.next_call()

    def finish(self, call: Call) -> None:
        try:
            call.run()
        finally:
            try:
                self.member.call_done(call, self.script.now_ms)
            finally:
                self.script.turn()

    def sleep(self, ms: int) -> None:
        """Time passes; nobody polls."""
        self.script.sleep(ms)

    def sleep_polling(self, ms: int, step_ms: int = 100) -> None:
        """Time passes; the application polls, and the coordinator answers heartbeats that are its oldest request."""
        for _ in range(0, ms, step_ms):
            self.script.sleep(step_ms)
            self.poll()
            if self.script.pending and isinstance(self.script.pending[0].message, HeartbeatRequest):
                self.answer_heartbeat()

    def join(self, generation: int = 1, assigned: Iterable[TopicPartition] = (TP0,), member_id: str = "me") -> None:
        """The rebalance that is due, as a follower."""
        self.poll()
        self.answer_join(generation, member_id=member_id)
        self.answer_sync(assigned)
        self.poll()

    def position(self, partition: TopicPartition, offset: int) -> None:
        self.subscription.seek(partition, offset)

    # --- the coordinator ---

    def request(self, kind: type[Message]) -> Request:
        """The only request of this class that waits."""
        found = self.script.requests(kind)
        assert len(found) == 1, f"{len(found)} requests of class {kind.__name__}"
        return found[0]

    def has(self, kind: type[Message]) -> bool:
        return bool(self.script.requests(kind))

    def answer(self, kind: type[Message], message: Message) -> Any:
        """The request that was answered."""
        request = self.request(kind)
        self.script.answer(request, message)
        self.script.turn()
        return request.message

    def answer_join(
        self,
        generation: int = 1,
        *,
        member_id: str = "me",
        error: int = 0,
        leader: str = "leader",
        protocol: str = "fixed",
        protocol_type: str | None = "consumer",
        members: Mapping[str, Collection[str]] | None = None,
        owned: Mapping[str, Collection[TopicPartition]] | None = None,
        skip: bool = False,
    ) -> JoinGroupRequest:
        """With `members` (their topics) this member leads."""
        rows = [
            JoinGroupResponse.Member(
                member_id=one,
                metadata=encode_subscription(
                    Subscription(tuple(topics), owned_partitions=tuple((owned or {}).get(one, ())))
                ),
            )
            for one, topics in (members or {}).items()
        ]
        message = JoinGroupResponse(
            error_code=error,
            generation_id=-1 if error else generation,
            protocol_type=None if error else protocol_type,
            protocol_name=None if error else protocol,
            leader="" if error else (member_id if members is not None else leader),
            member_id=member_id,
            members=rows,
            skip_assignment=skip,
        )
        request: JoinGroupRequest = self.answer(JoinGroupRequest, message)
        return request

    def answer_sync(
        self,
        assigned: Iterable[TopicPartition] = (),
        *,
        error: int = 0,
        protocol: str | None = "fixed",
        protocol_type: str | None = "consumer",
    ) -> SyncGroupRequest:
        blob = b"" if error else encode_assignment(Assignment(tuple(assigned)))
        message = SyncGroupResponse(
            error_code=error,
            protocol_type=None if error else protocol_type,
            protocol_name=None if error else protocol,
            assignment=blob,
        )
        request: SyncGroupRequest = self.answer(SyncGroupRequest, message)
        return request

    def answer_heartbeat(self, error: int = 0) -> HeartbeatRequest:
        request: HeartbeatRequest = self.answer(HeartbeatRequest, HeartbeatResponse(error_code=error))
        return request

    def answer_leave(self, error: int = 0, members: Sequence[int] = (0,)) -> LeaveGroupRequest:
        rows = [LeaveGroupResponse.Member(member_id="me", group_instance_id=None, error_code=code) for code in members]
        request: LeaveGroupRequest = self.answer(LeaveGroupRequest, LeaveGroupResponse(error_code=error, members=rows))
        return request

    def answer_commit(self, error: int = 0, errors: Mapping[TopicPartition, int] | None = None) -> OffsetCommitRequest:
        """The oldest commit that waits."""
        request = self.script.requests(OffsetCommitRequest)[0]
        topics = [
            OffsetCommitResponse.Topic(
                name=topic.name,
                partitions=[
                    OffsetCommitResponse.Partition(
                        partition_index=row.partition_index,
                        error_code=(errors or {}).get(TopicPartition(topic.name, row.partition_index), error),
                    )
                    for row in topic.partitions
                ],
            )
            for topic in request.message.topics
        ]
        self.script.answer(request, OffsetCommitResponse(topics=topics))
        self.script.turn()
        message: OffsetCommitRequest = request.message
        return message

    def lose_coordinator(self) -> None:
        """Its connection ends."""
        self.script.break_node(self.script.endpoint(self.script.coordinator))
        self.script.turn()


def committed(request: OffsetCommitRequest) -> dict[TopicPartition, OffsetAndMetadata]:
    return {
        TopicPartition(topic.name, row.partition_index): OffsetAndMetadata(
            row.committed_offset,
            None if row.committed_leader_epoch < 0 else row.committed_leader_epoch,
            row.committed_metadata or "",
        )
        for topic in request.topics
        for row in topic.partitions
    }


def subscription_of(request: JoinGroupRequest) -> Subscription:
    return decode_subscription(request.protocols[0].metadata)


NOT_COORDINATOR, UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS, FENCED = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.FENCED_INSTANCE_ID,
)
