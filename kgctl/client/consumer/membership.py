"""A member of a consumer group in the classic protocol with eager rebalancing: join, sync, heartbeat, commit, leave.

Steps without I/O. Answers of the coordinator change `member_id`, `generation_id` and `must_join`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from broker.light_dataclasses import dataclass
from broker.protocol.consumer_protocol import (
    PROTOCOL_TYPE,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    decode_assignment,
    decode_subscription,
    encode_blob,
)
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from broker.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from broker.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from broker.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from broker.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from broker.protocol.wire_types import DecodeError, Message
from kgctl.client.consumer.assignors import ASSIGNORS, Subscriber
from kgctl.client.net.authorization import Asked
from kgctl.client.net.cluster import Ask, Cluster, Node
from kgctl.client.net.errors import BrokerError, KgctlError, TimedOut, Unreachable
from kgctl.client.net.steps import Pause, Steps
from kgctl.model.topic_partition import TopicPartition

R = TypeVar("R", bound=Message)

RETRY_SECONDS = 0.1
# All members can read version 1. Eager rebalancing needs no owned partitions, which later versions carry.
SUBSCRIPTION_VERSION = 1


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """Kafka's consumer options session.timeout.ms, max.poll.interval.ms (the rebalance timeout), heartbeat.interval.ms."""

    group_id: str
    session_timeout_ms: int = 45_000
    rebalance_timeout_ms: int = 300_000
    heartbeat_interval_ms: int = 3_000
    assignors: tuple[str, ...] = ("range", "roundrobin")


class Membership:
    """One member. `must_join` is true before the first join and whenever its generation has ended."""

    def __init__(self, cluster: Cluster, settings: GroupSettings) -> None:
        self.settings = settings
        self._cluster = cluster
        self.member_id = ""
        self.generation_id = -1
        self.must_join = True
        self.is_leader = False

    def join(self, topics: Sequence[str]) -> Steps[list[TopicPartition]]:
        """Join or rejoin the group; the assigned partitions once a generation is complete."""
        while True:
            joined = yield from self._join(topics)
            if joined is None:
                continue
            assigned = yield from self._sync(joined)
            if assigned is not None:
                self.must_join = False
                return assigned

    def heartbeat(self) -> Steps[None]:
        """Send a heartbeat. Sets `must_join` if the group rebalances."""
        request = HeartbeatRequest(
            group_id=self.settings.group_id, generation_id=self.generation_id, member_id=self.member_id
        )
        answer = yield from self._ask(request, HeartbeatResponse)
        self._handle_error(answer.error_code)

    def commit(self, offsets: Mapping[TopicPartition, int]) -> Steps[dict[TopicPartition, KgctlError]]:
        """Commit offsets as this member; the refused ones with their errors."""
        topics: dict[str, OffsetCommitRequest.Topic] = {}
        for (name, index), offset in offsets.items():
            topic = topics.setdefault(name, OffsetCommitRequest.Topic(name=name, partitions=[]))
            topic.partitions.append(
                OffsetCommitRequest.Partition(partition_index=index, committed_offset=offset, committed_metadata="")
            )
        request = OffsetCommitRequest(
            group_id=self.settings.group_id,
            generation_id_or_member_epoch=self.generation_id,
            member_id=self.member_id,
            topics=list(topics.values()),
        )
        answer = yield from self._ask(request, OffsetCommitResponse, _first_commit_error)
        refused: dict[TopicPartition, KgctlError] = {}
        for topic_row in answer.topics:
            for row in topic_row.partitions:
                if row.error_code:
                    partition = TopicPartition(topic_row.name, row.partition_index)
                    asked = Asked(OffsetCommitRequest, self.settings.group_id, partition.topic)
                    refused[partition] = BrokerError(row.error_code, f"commit of {partition}", asked=asked)
        for code in {error.code for error in refused.values() if isinstance(error, BrokerError)} & _GENERATION_ENDED:
            self._handle_error(code)
        return refused

    def leave(self) -> Steps[None]:
        """Leave the group, so that others need not wait for the session timeout. Ignores the coordinator's answer."""
        if not self.member_id:
            return
        member = LeaveGroupRequest.Member(member_id=self.member_id, reason="the consumer is being closed")
        request = LeaveGroupRequest(group_id=self.settings.group_id, member_id=self.member_id, members=[member])
        self.member_id, self.generation_id, self.must_join = "", -1, True
        node = yield from self._coordinator()
        yield from self._cluster.ask_each([Ask(node.endpoint, request, LeaveGroupResponse)])

    # --- joining ---

    def _join(self, topics: Sequence[str]) -> Steps[JoinGroupResponse | None]:
        """None if the join has to be retried."""
        subscription = ConsumerProtocolSubscription(topics=sorted(topics))
        blob = encode_blob(subscription, SUBSCRIPTION_VERSION)
        request = JoinGroupRequest(
            group_id=self.settings.group_id,
            session_timeout_ms=self.settings.session_timeout_ms,
            rebalance_timeout_ms=self.settings.rebalance_timeout_ms,
            member_id=self.member_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[JoinGroupRequest.Protocol(name=name, metadata=blob) for name in self.settings.assignors],
        )
        answer = yield from self._ask(request, JoinGroupResponse, wait_ms=self.settings.rebalance_timeout_ms)
        code = answer.error_code
        if code == ErrorCode.MEMBER_ID_REQUIRED:  # KIP-394
            self.member_id = answer.member_id
            return None
        if code in _GENERATION_ENDED:
            self._handle_error(code)
            if code == ErrorCode.REBALANCE_IN_PROGRESS:
                yield Pause(RETRY_SECONDS, f"group {self.settings.group_id!r} is rebalancing")
            return None
        if code:
            raise self._refusal(code, JoinGroupRequest)
        self.member_id, self.generation_id = answer.member_id, answer.generation_id
        self.is_leader = answer.leader == answer.member_id
        return answer

    def _sync(self, joined: JoinGroupResponse) -> Steps[list[TopicPartition] | None]:
        """None if the generation has ended meanwhile."""
        assignments: list[SyncGroupRequest.Assignment] = []
        if self.is_leader and not joined.skip_assignment:
            assignments = yield from self._assign(joined)
        request = SyncGroupRequest(
            group_id=self.settings.group_id,
            generation_id=self.generation_id,
            member_id=self.member_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=joined.protocol_name,
            assignments=assignments,
        )
        answer = yield from self._ask(request, SyncGroupResponse, wait_ms=self.settings.rebalance_timeout_ms)
        if answer.error_code in _GENERATION_ENDED:
            self._handle_error(answer.error_code)
            return None
        if answer.error_code:
            raise self._refusal(answer.error_code, SyncGroupRequest)
        if not answer.assignment:
            return []
        try:
            mine = decode_assignment(answer.assignment)
        except DecodeError as error:
            raise KgctlError(
                f"group {self.settings.group_id!r}: the leader's assignment cannot be decoded: {error}"
            ) from error
        return [TopicPartition(row.topic, index) for row in mine.assigned_partitions for index in row.partitions]

    def _assign(self, joined: JoinGroupResponse) -> Steps[list[SyncGroupRequest.Assignment]]:
        """The leader's part: assign partitions to every member."""
        subscribers = []
        for member in joined.members:
            try:
                topics = tuple(decode_subscription(member.metadata).topics)
            except DecodeError as error:
                reason = f"the subscription of member {member.member_id!r} cannot be decoded: {error}"
                raise KgctlError(f"group {self.settings.group_id!r}: {reason}") from error
            subscribers.append(Subscriber(member.member_id, topics, member.group_instance_id))
        wanted = sorted({topic for one in subscribers for topic in one.topics})
        metadata = yield from self._cluster.metadata(wanted)
        counts = {row.name or "": len(row.partitions) for row in metadata.topics if not row.error_code}
        shares = ASSIGNORS[joined.protocol_name or ""](subscribers, counts)
        return [
            SyncGroupRequest.Assignment(member_id=member_id, assignment=_assignment_blob(share))
            for member_id, share in shares.items()
        ]

    # --- requests ---

    def _ask(
        self,
        request: Message,
        response: type[R],
        error_of: Callable[[Any], int] = lambda answer: int(answer.error_code),
        wait_ms: int = 0,
    ) -> Steps[R]:
        """Ask the coordinator. Looks it up again and retries while it moves, loads or cannot be reached."""
        while True:
            try:
                node = yield from self._coordinator()
                answer = yield from self._cluster.ask(Ask(node.endpoint, request, response, wait_ms=wait_ms))
                code = error_of(answer)
                if code not in _RETRY_COORDINATOR:
                    return answer
                failure: KgctlError = self._refusal(code, type(request))
            except (BrokerError, TimedOut, Unreachable) as error:
                failure = error
            if not failure.retriable and not isinstance(failure, TimedOut):
                raise failure
            self._cluster.forget_coordinator(self.settings.group_id)
            yield Pause(RETRY_SECONDS, str(failure))

    def _coordinator(self) -> Steps[Node]:
        found = yield from self._cluster.coordinators([self.settings.group_id])
        node = found[self.settings.group_id]
        if isinstance(node, KgctlError):
            raise node
        return node

    def _refusal(self, code: int, request: type[Message]) -> BrokerError:
        group = self.settings.group_id
        return BrokerError(code, f"group {group!r}", asked=Asked(request, group=group))

    def _handle_error(self, code: int) -> None:
        """Set `must_join` if the error means that the generation has ended. Raises any other error."""
        if not code:
            return
        if code not in _GENERATION_ENDED:
            raise self._refusal(code, HeartbeatRequest)
        self.must_join = True
        if code == ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id, self.generation_id = "", -1


_GENERATION_ENDED = frozenset(
    {ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID}
)
_RETRY_COORDINATOR = frozenset(
    {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
)


def _first_commit_error(answer: OffsetCommitResponse) -> int:
    codes = (row.error_code for topic in answer.topics for row in topic.partitions)
    return next((code for code in codes if code in _RETRY_COORDINATOR), 0)


def _assignment_blob(partitions: Sequence[TopicPartition]) -> bytes:
    rows: dict[str, ConsumerProtocolAssignment.TopicPartition] = {}
    for topic, index in partitions:
        row = rows.setdefault(topic, ConsumerProtocolAssignment.TopicPartition(topic=topic, partitions=[]))
        row.partitions.append(index)
    return encode_blob(ConsumerProtocolAssignment(assigned_partitions=list(rows.values())), SUBSCRIPTION_VERSION)
