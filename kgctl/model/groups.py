"""Rows about consumer groups: listings, state, members, lag."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from broker.light_dataclasses import dataclass, field, replace
from kgctl.model.failure import RowError
from kgctl.model.topic_partition import TopicPartition

CLASSIC, CONSUMER, SHARE = "Classic", "Consumer", "Share"
STATES = (
    "PreparingRebalance",
    "CompletingRebalance",
    "Stable",
    "Dead",
    "Empty",
    "Assigning",
    "Reconciling",
    "NotReady",
)
TYPES = (CLASSIC, CONSUMER, SHARE, "Streams")
EMPTY_STATES = ("Empty", "Dead")
REBALANCING = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")


@dataclass(frozen=True, slots=True)
class GroupListing:
    group: str
    type: str | None
    state: str | None
    protocol: str | None


@dataclass(frozen=True, slots=True)
class Listing:
    """The groups of all brokers that answered, and the errors of the brokers that did not."""

    groups: tuple[GroupListing, ...]
    errors: tuple[RowError, ...] = ()


@dataclass(frozen=True, slots=True, order=True)
class TopicPartitions:
    topic: str
    partitions: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.topic}:{','.join(map(str, self.partitions))}"

    def places(self) -> list[TopicPartition]:
        return [TopicPartition(self.topic, number) for number in self.partitions]


def by_topic(partitions: Iterable[TopicPartition]) -> tuple[TopicPartitions, ...]:
    """(topic, partition) pairs as one entry per topic, in order."""
    found: dict[str, list[int]] = {}
    for topic, partition in sorted(set(partitions)):
        found.setdefault(topic, []).append(partition)
    return tuple(TopicPartitions(topic, tuple(numbers)) for topic, numbers in found.items())


@dataclass(frozen=True, slots=True)
class MemberRow:
    """A member of a group. An assignment is None if it cannot be decoded: its protocol is not the consumer protocol.

    Only members of consumer groups (KIP-848) have epochs, a target, `revoking` (what they have not given up yet),
    `waiting_for` (what others have not given up yet) and a `member_type`, the group protocol that they speak.

    A row with an error stands for all members of a group that could not be described.
    """

    group: str
    consumer_id: str | None
    group_instance_id: str | None
    host: str | None
    client_id: str | None
    partitions: int | None
    generation: int | None
    current_epoch: int | None = None
    current_assignment: tuple[TopicPartitions, ...] | None = None
    target_epoch: int | None = None
    target_assignment: tuple[TopicPartitions, ...] | None = None
    revoking: tuple[TopicPartitions, ...] | None = None
    waiting_for: tuple[TopicPartitions, ...] | None = None
    leader: bool | None = None
    session_timeout_ms: int | None = None
    rebalance_timeout_ms: int | None = None
    phase: str | None = None
    heartbeat_age_ms: int | None = None
    # The topics that the member subscribes to; not known during a rebalance of a classic group.
    subscribed: tuple[str, ...] | None = None
    subscribed_regex: str | None = None
    rack_id: str | None = None
    member_type: str | None = None
    error: RowError | None = None

    def owned(self) -> list[TopicPartition]:
        return [
            TopicPartition(entry.topic, number)
            for entry in self.current_assignment or ()
            for number in entry.partitions
        ]


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """How far a group has read one partition; None where nothing is committed or the log end is unknown.

    A row with an error and no topic stands for all partitions of a group that could not be described.
    """

    group: str
    topic: str | None
    partition: int | None
    leader_epoch: int | None
    current_offset: int | None
    log_end_offset: int | None
    lag: int | None
    consumer_id: str | None
    host: str | None
    client_id: str | None
    group_instance_id: str | None = None
    error: RowError | None = None


@dataclass(frozen=True, slots=True)
class StateRow:
    group: str
    coordinator: str | None
    coordinator_id: int | None
    assignment_strategy: str | None
    state: str | None
    group_epoch: int | None
    target_assignment_epoch: int | None
    members: int | None
    generation: int | None
    type: str | None
    state_since_ms: int | None = None
    offsets_partition: int | None = None
    error: RowError | None = None


@dataclass(frozen=True, slots=True)
class Committed:
    """A committed offset, or the error that the coordinator answered."""

    offset: int | None
    leader_epoch: int | None = None
    metadata: str | None = None
    error: RowError | None = None


@dataclass(frozen=True, slots=True)
class PendingOffsets:
    """Offsets in one topic that become committed if an open transaction commits. Unknown ids are None."""

    topic: str
    partitions: tuple[int, ...]
    producer_id: int | None = None
    transactional_id: str | None = None


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """What is known about one group; with an error, the other fields may be missing."""

    group: str
    type: str | None = None
    protocol_type: str | None = None
    state: str | None = None
    assignment_strategy: str | None = None
    coordinator: str | None = None
    coordinator_id: int | None = None
    generation: int | None = None
    leader: str | None = None
    group_epoch: int | None = None
    target_assignment_epoch: int | None = None
    members: tuple[MemberRow, ...] = ()
    partitions: tuple[PartitionLag, ...] = ()
    # The topics that its members subscribe to; None where the coordinator does not report them, as during a rebalance.
    subscribed: frozenset[str] | None = None
    # When it entered its state, ms since 1970.
    state_since_ms: int | None = None
    # When offsets were committed, ms since 1970 by the coordinator's clock; partitions without a known time are absent.
    committed_at: Mapping[TopicPartition, int] = field(default_factory=dict)
    # Of partitions that members own and that have no committed offset: the offset and the time of the first record.
    # Without records, the offset is the log end.
    unread_from: Mapping[TopicPartition, int] = field(default_factory=dict)
    unread_since: Mapping[TopicPartition, int] = field(default_factory=dict)
    # Of partitions with unread records: where the records of the last moments begin, if this was asked; without any, the log end.
    recent_from: Mapping[TopicPartition, int] = field(default_factory=dict)
    # The coordinator's clock when it answered, ms since 1970; None where it does not report it.
    clock_ms: int | None = None
    # When the coordinator started, by its clock; None where it does not report it.
    broker_started_ms: int | None = None
    pending: tuple[PendingOffsets, ...] = ()
    # The partition of __consumer_offsets that holds the group.
    offsets_partition: int | None = None
    # The protocols that its members speak, for people; more than one while clients are upgraded.
    member_protocols: tuple[str, ...] = ()
    error: RowError | None = None

    def member_rows(self) -> tuple[MemberRow, ...]:
        """The members; one row with the error if the group could not be described."""
        if self.error is None:
            return self.members
        return (MemberRow(self.group, None, None, None, None, None, None, error=self.error),)

    def partition_rows(self) -> tuple[PartitionLag, ...]:
        """The partitions; one row with the error if the group could not be described."""
        if self.error is None:
            return self.partitions
        return (PartitionLag(self.group, None, None, None, None, None, None, None, None, None, error=self.error),)

    @property
    def total_lag(self) -> int:
        """Sum of the lag of all partitions; a commit beyond the log end counts as no lag, not as negative lag."""
        return sum(max(row.lag, 0) for row in self.partitions if row.lag)

    @property
    def last_commit_ms(self) -> int | None:
        """When the group last committed an offset that it still has; None if not known."""
        return max(self.committed_at.values(), default=None)

    @property
    def last_used_ms(self) -> int | None:
        """When its last member left or its newest offset was committed, whichever is later; None if either is not known.

        A consumer of a topic without new records commits nothing, so the age of the commits alone proves nothing. Only
        a group that never had members, as simple consumers leave it, is as old as its commits.
        """
        times = [] if self.state_since_ms is None else [self.state_since_ms]
        for row in self.partitions:
            if row.topic is not None and row.partition is not None and row.current_offset is not None:
                at_ms = self.committed_at.get(TopicPartition(row.topic, row.partition))
                if at_ms is None:
                    return None
                times.append(at_ms)
        is_simple = self.type == CLASSIC and not self.protocol_type
        return max(times, default=None) if is_simple or self.state_since_ms is not None else None

    def state_row(self) -> StateRow:
        return StateRow(
            group=self.group,
            coordinator=self.coordinator,
            coordinator_id=self.coordinator_id,
            assignment_strategy=self.assignment_strategy or None,
            state=self.state,
            group_epoch=self.group_epoch,
            target_assignment_epoch=self.target_assignment_epoch,
            members=None if self.error else len(self.members),
            generation=self.generation,
            type=self.type,
            state_since_ms=self.state_since_ms,
            offsets_partition=self.offsets_partition,
            error=self.error,
        )

    def in_topics(self, topics: Collection[str]) -> GroupDescription:
        """The group with only what is in these topics, and the members that own a partition or subscribe to one."""
        members = tuple(
            member
            for member in self.members
            if any(entry.topic in topics for entry in member.current_assignment or ())
            or any(topic in topics for topic in member.subscribed or ())
        )
        return replace(
            self,
            members=members,
            partitions=tuple(row for row in self.partitions if row.topic in topics),
            committed_at={key: at_ms for key, at_ms in self.committed_at.items() if key.topic in topics},
            pending=tuple(row for row in self.pending if row.topic in topics),
        )


def lag_of(committed: int | None, log_end: int | None) -> int | None:
    """None if either is unknown. Negative for a commit beyond the log end (a truncated or recreated topic), as in Kafka's tool."""
    return None if committed is None or log_end is None else log_end - committed


def lag_rows(
    group: str,
    members: Iterable[MemberRow],
    committed: Mapping[TopicPartition, Committed],
    log_ends: Mapping[TopicPartition, int | RowError],
) -> tuple[PartitionLag, ...]:
    """A row per assigned partition, members with most partitions first, then committed partitions without an owner."""
    rows, owned = [], set()
    for member in sorted(members, key=lambda member: (-(member.partitions or 0), member.consumer_id or "")):
        partitions = member.owned()
        owned.update(partitions)
        rows += [_lag_row(group, key, member, committed.get(key), log_ends.get(key)) for key in sorted(partitions)]
    rows += [_lag_row(group, key, None, committed[key], log_ends.get(key)) for key in sorted(committed.keys() - owned)]
    return tuple(rows)


def _lag_row(
    group: str, key: TopicPartition, member: MemberRow | None, commit: Committed | None, log_end: int | RowError | None
) -> PartitionLag:
    offset = leader_epoch = error = None
    if commit is not None:
        offset, leader_epoch, error = commit.offset, commit.leader_epoch, commit.error
    end = log_end if isinstance(log_end, int) else None
    if error is None and isinstance(log_end, RowError):
        error = log_end
    lag = lag_of(offset, end)
    # Positions rather than names: a cluster has up to a million of these rows.
    if member is None:
        return PartitionLag(group, key[0], key[1], leader_epoch, offset, end, lag, None, None, None, None, error)
    ids = member.consumer_id, member.host, member.client_id, member.group_instance_id
    return PartitionLag(group, key[0], key[1], leader_epoch, offset, end, lag, *ids, error)
