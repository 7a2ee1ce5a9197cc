"""State records of consumer groups (KIP-848), as `__consumer_offsets` holds them: record types 3 to 8, and 16.

A record without its content (None) is a tombstone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from broker.light_named_tuples import NamedTuple
from broker.protocol.newer_group_records import (
    CURRENT_ASSIGNMENT,
    GROUP_METADATA,
    MEMBER,
    PARTITION_METADATA,
    REGULAR_EXPRESSION,
    TARGET_ASSIGNMENT,
    TARGET_ASSIGNMENT_MEMBER,
    ConsumerGroupMember,
    ConsumerGroupMetadata,
    CurrentAssignment,
    RegularExpression,
    TargetAssignment,
    TargetAssignmentMember,
    TopicPartitions,
    decode_newer_key,
    decode_newer_value,
    encode_newer_key,
    encode_newer_value,
    kind_of,
)
from broker.protocol.wire_types import DecodeError, Message

# Partitions by topic id. A topic without partitions is left out.
Owned: TypeAlias = "Mapping[bytes, frozenset[int]]"
# The same, in the order of an assignor. The record keeps the order, which later assignments depend on.
Target: TypeAlias = "Mapping[bytes, tuple[int, ...]]"


class ClassicProtocols(NamedTuple):
    """What a member of a consumer group that speaks the classic protocol has joined with."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


class Subscription(NamedTuple):
    """What a member has sent about itself. An empty regular expression means none."""

    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    topic_names: frozenset[str]
    topic_regex: str
    rebalance_timeout_ms: int
    server_assignor: str | None
    classic: ClassicProtocols | None = None


class Current(NamedTuple):
    """What a member owns, and in which epoch. `state` has Kafka's number; see `MemberState`."""

    member_epoch: int
    previous_member_epoch: int
    state: int
    assigned: Owned
    pending_revocation: Owned


class ResolvedRegex(NamedTuple):
    """The topics that match a regular expression. `version` is that of the topics, `timestamp_ms` the time of the look-up."""

    topics: frozenset[str]
    version: int
    timestamp_ms: int


class GroupEpochRecord(NamedTuple):
    """The epoch of a group, and a hash of the metadata of the topics that it subscribes to.

    A tombstone removes the group, with its offsets unless it becomes one of another type, which keeps them.
    """

    group_id: str
    epoch: int | None
    metadata_hash: int
    timestamp_ms: int
    keeps_offsets: bool = False


class PartitionMetadataTombstone(NamedTuple):
    """Removes what Kafka before 4.1 stored of the topics."""

    group_id: str
    timestamp_ms: int


class MemberRecord(NamedTuple):
    group_id: str
    member_id: str
    subscription: Subscription | None
    timestamp_ms: int


class TargetEpochRecord(NamedTuple):
    """The epoch of the target assignment."""

    group_id: str
    epoch: int | None
    timestamp_ms: int


class TargetRecord(NamedTuple):
    """The target assignment of a member."""

    group_id: str
    member_id: str
    target: Target | None
    timestamp_ms: int


class CurrentRecord(NamedTuple):
    group_id: str
    member_id: str
    current: Current | None
    timestamp_ms: int


class RegexRecord(NamedTuple):
    group_id: str
    regex: str
    resolved: ResolvedRegex | None
    timestamp_ms: int


ConsumerRecord: TypeAlias = (
    "GroupEpochRecord | PartitionMetadataTombstone | MemberRecord | TargetEpochRecord | TargetRecord | CurrentRecord"
    " | RegexRecord"
)
_KINDS: dict[type[Any], int] = {
    GroupEpochRecord: GROUP_METADATA,
    PartitionMetadataTombstone: PARTITION_METADATA,
    MemberRecord: MEMBER,
    TargetEpochRecord: TARGET_ASSIGNMENT,
    TargetRecord: TARGET_ASSIGNMENT_MEMBER,
    CurrentRecord: CURRENT_ASSIGNMENT,
    RegexRecord: REGULAR_EXPRESSION,
}


def encode(record: ConsumerRecord) -> tuple[bytes, bytes | None] | None:
    """Key and value as Kafka writes them; None if the record belongs to another kind of group."""
    if type(record) not in _KINDS:
        return None
    content: Message | None
    name = ""
    match record:
        case GroupEpochRecord(_, epoch, metadata_hash):
            content = None if epoch is None else ConsumerGroupMetadata(epoch=epoch, metadata_hash=metadata_hash)
        case PartitionMetadataTombstone():
            content = None
        case MemberRecord(_, name, subscription):
            content = None if subscription is None else _member(subscription)
        case TargetEpochRecord(_, epoch):
            content = None if epoch is None else TargetAssignment(assignment_epoch=epoch)
        case TargetRecord(_, name, target):
            content = None if target is None else _target_member(target)
        case CurrentRecord(_, name, current):
            content = None if current is None else _current(current)
        case RegexRecord(_, name, resolved):
            content = None if resolved is None else _resolved(resolved)
    key = encode_newer_key(_KINDS[type(record)], record.group_id, name)
    return key, None if content is None else encode_newer_value(content)


def decode(key: bytes, value: bytes | None, timestamp_ms: int) -> ConsumerRecord | None:
    """The state record of a row; None if it belongs to another kind of group. Raises DecodeError for invalid bytes."""
    kind = kind_of(key)
    make = _MAKERS.get(kind)
    named = None if make is None else decode_newer_key(key)
    if make is None or named is None:
        return None
    content = None if value is None else decode_newer_value(key, value)
    if content is None and value is not None and kind != PARTITION_METADATA:
        raise DecodeError(f"version {kind_of(value)} of a value of type {kind} is not known")
    return make(named[1], content, timestamp_ms)


# ---- contents as messages ------------------------------------------------------------------------------------------


def _member(subscription: Subscription) -> ConsumerGroupMember:
    classic = subscription.classic
    return ConsumerGroupMember(
        instance_id=subscription.instance_id,
        rack_id=subscription.rack_id,
        client_id=subscription.client_id,
        client_host=subscription.client_host,
        subscribed_topic_names=sorted(subscription.topic_names),
        subscribed_topic_regex=subscription.topic_regex,
        rebalance_timeout_ms=subscription.rebalance_timeout_ms,
        server_assignor=subscription.server_assignor,
        classic_member=None
        if classic is None
        else ConsumerGroupMember.ClassicMember(
            session_timeout_ms=classic.session_timeout_ms,
            supported_protocols=[
                ConsumerGroupMember.ClassicProtocol(name=name, metadata=metadata)
                for name, metadata in classic.protocols
            ],
        ),
    )


def _subscription(member: ConsumerGroupMember) -> Subscription:
    classic = member.classic_member
    return Subscription(
        member.instance_id,
        member.rack_id,
        member.client_id,
        member.client_host,
        frozenset(member.subscribed_topic_names),
        member.subscribed_topic_regex or "",
        member.rebalance_timeout_ms,
        member.server_assignor,
        None
        if classic is None
        else ClassicProtocols(
            classic.session_timeout_ms,
            tuple((protocol.name, bytes(protocol.metadata)) for protocol in classic.supported_protocols),
        ),
    )


def _current(current: Current) -> CurrentAssignment:
    return CurrentAssignment(
        member_epoch=current.member_epoch,
        previous_member_epoch=current.previous_member_epoch,
        state=current.state,
        assigned_partitions=_partitions(current.assigned),
        partitions_pending_revocation=_partitions(current.pending_revocation),
    )


def _resolved(resolved: ResolvedRegex) -> RegularExpression:
    return RegularExpression(topics=sorted(resolved.topics), version=resolved.version, timestamp=resolved.timestamp_ms)


def _partitions(owned: Owned) -> list[TopicPartitions]:
    return [TopicPartitions(topic_id=topic_id, partitions=sorted(numbers)) for topic_id, numbers in owned.items()]


def _owned(rows: Iterable[TopicPartitions]) -> Owned:
    return {bytes(row.topic_id): frozenset(row.partitions) for row in rows}


def _target_member(target: Target) -> TargetAssignmentMember:
    return TargetAssignmentMember(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, partitions=list(numbers)) for topic_id, numbers in target.items()
        ]
    )


def _target(content: TargetAssignmentMember) -> Target:
    return {bytes(row.topic_id): tuple(row.partitions) for row in content.topic_partitions}


def _group_record(key: Any, content: Any, timestamp_ms: int) -> ConsumerRecord:
    if content is None:
        return GroupEpochRecord(key.group, None, 0, timestamp_ms)
    return GroupEpochRecord(key.group, content.epoch, content.metadata_hash, timestamp_ms)


def _current_record(key: Any, content: Any, timestamp_ms: int) -> ConsumerRecord:
    current = content and Current(
        content.member_epoch,
        content.previous_member_epoch,
        content.state,
        _owned(content.assigned_partitions),
        _owned(content.partitions_pending_revocation),
    )
    return CurrentRecord(key.group, key.member_id, current, timestamp_ms)


def _regex_record(key: Any, content: Any, timestamp_ms: int) -> ConsumerRecord:
    resolved = content and ResolvedRegex(frozenset(content.topics), content.version, content.timestamp)
    return RegexRecord(key.group, key.regular_expression, resolved, timestamp_ms)


_MAKERS: dict[int, Callable[[Any, Any, int], ConsumerRecord | None]] = {
    GROUP_METADATA: _group_record,
    # What Kafka before 4.1 stored is not read: the hash replaces it.
    PARTITION_METADATA: lambda key, content, timestamp_ms: PartitionMetadataTombstone(key.group, timestamp_ms),
    MEMBER: lambda key, content, timestamp_ms: MemberRecord(
        key.group, key.member_id, content and _subscription(content), timestamp_ms
    ),
    TARGET_ASSIGNMENT: lambda key, content, timestamp_ms: TargetEpochRecord(
        key.group, content and content.assignment_epoch, timestamp_ms
    ),
    TARGET_ASSIGNMENT_MEMBER: lambda key, content, timestamp_ms: TargetRecord(
        key.group, key.member_id, content and _target(content), timestamp_ms
    ),
    CURRENT_ASSIGNMENT: _current_record,
    REGULAR_EXPRESSION: _regex_record,
}
