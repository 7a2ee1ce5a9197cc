"""State records of share groups (KIP-932), as `__consumer_offsets` holds them: record types 10 to 15.

A record without its content (None) is a tombstone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from broker.cores.groups.records.consumer import Owned, Target
from broker.light_named_tuples import NamedTuple
from broker.protocol.newer_group_records import (
    SHARE_CURRENT_ASSIGNMENT,
    SHARE_GROUP_METADATA,
    SHARE_MEMBER,
    SHARE_STATE_PARTITIONS,
    SHARE_TARGET_ASSIGNMENT,
    SHARE_TARGET_ASSIGNMENT_MEMBER,
    TargetAssignment,
    TargetAssignmentMember,
    TopicPartitions,
    decode_newer_key,
    decode_newer_value,
    encode_newer_key,
    encode_newer_value,
    kind_of,
)
from broker.protocol.share_group_records import (
    ShareGroupCurrentAssignment,
    ShareGroupMember,
    ShareGroupMetadata,
    ShareGroupStatePartitions,
)
from broker.protocol.share_group_records import TopicPartitions as OwnedPartitions
from broker.protocol.wire_types import DecodeError, Message


class ShareSubscription(NamedTuple):
    """What a member has sent about itself."""

    rack_id: str | None
    client_id: str
    client_host: str
    topic_names: frozenset[str]


class ShareCurrent(NamedTuple):
    """What is assigned to a member, and in which epoch. Kafka knows one state only: `state` is 0."""

    member_epoch: int
    previous_member_epoch: int
    state: int
    assigned: Owned


class NamedPartitions(NamedTuple):
    """Partitions of a topic, in the order of the record."""

    topic: str
    partitions: tuple[int, ...]


class StatePartitions(NamedTuple):
    """The partitions whose state the share coordinator shall get, has, and shall forget, by topic id; the last with names only."""

    initializing: Mapping[bytes, NamedPartitions]
    initialized: Mapping[bytes, NamedPartitions]
    deleting: Mapping[bytes, str]


class ShareMemberRecord(NamedTuple):
    group_id: str
    member_id: str
    subscription: ShareSubscription | None
    timestamp_ms: int


class ShareEpochRecord(NamedTuple):
    """The epoch of a group, and a hash of the metadata of the topics that it subscribes to. A tombstone removes the group."""

    group_id: str
    epoch: int | None
    metadata_hash: int
    timestamp_ms: int


class ShareTargetEpochRecord(NamedTuple):
    """The epoch of the target assignment."""

    group_id: str
    epoch: int | None
    timestamp_ms: int


class ShareTargetRecord(NamedTuple):
    """The target assignment of a member."""

    group_id: str
    member_id: str
    target: Target | None
    timestamp_ms: int


class ShareCurrentRecord(NamedTuple):
    group_id: str
    member_id: str
    current: ShareCurrent | None
    timestamp_ms: int


class StatePartitionsRecord(NamedTuple):
    group_id: str
    partitions: StatePartitions | None
    timestamp_ms: int


ShareRecord: TypeAlias = (
    "ShareMemberRecord | ShareEpochRecord | ShareTargetEpochRecord | ShareTargetRecord | ShareCurrentRecord"
    " | StatePartitionsRecord"
)
_KINDS: dict[type[Any], int] = {
    ShareMemberRecord: SHARE_MEMBER,
    ShareEpochRecord: SHARE_GROUP_METADATA,
    ShareTargetEpochRecord: SHARE_TARGET_ASSIGNMENT,
    ShareTargetRecord: SHARE_TARGET_ASSIGNMENT_MEMBER,
    ShareCurrentRecord: SHARE_CURRENT_ASSIGNMENT,
    StatePartitionsRecord: SHARE_STATE_PARTITIONS,
}


def encode(record: ShareRecord) -> tuple[bytes, bytes | None]:
    """Key and value as Kafka writes them."""
    content: Message | None
    name = ""
    match record:
        case ShareMemberRecord(_, name, subscription):
            content = None if subscription is None else _member(subscription)
        case ShareEpochRecord(_, epoch, metadata_hash):
            content = None if epoch is None else ShareGroupMetadata(epoch=epoch, metadata_hash=metadata_hash)
        case ShareTargetEpochRecord(_, epoch):
            content = None if epoch is None else TargetAssignment(assignment_epoch=epoch)
        case ShareTargetRecord(_, name, target):
            content = None if target is None else _target(target)
        case ShareCurrentRecord(_, name, current):
            content = None if current is None else _current(current)
        case StatePartitionsRecord(_, partitions):
            content = None if partitions is None else _state_partitions(partitions)
    key = encode_newer_key(_KINDS[type(record)], record.group_id, name)
    return key, None if content is None else encode_newer_value(content)


def decode(key: bytes, value: bytes | None, timestamp_ms: int) -> ShareRecord | None:
    """The state record of a row; None if it belongs to another kind of group. Raises DecodeError for invalid bytes."""
    make = _MAKERS.get(kind_of(key))
    named = None if make is None else decode_newer_key(key)
    if make is None or named is None:
        return None
    content = None if value is None else decode_newer_value(key, value)
    if content is None and value is not None:
        raise DecodeError(f"version {kind_of(value)} of a value of type {kind_of(key)} is not known")
    return make(named[1], content, timestamp_ms)


# ---- contents as messages ------------------------------------------------------------------------------------------


def _member(subscription: ShareSubscription) -> ShareGroupMember:
    return ShareGroupMember(
        rack_id=subscription.rack_id,
        client_id=subscription.client_id,
        client_host=subscription.client_host,
        subscribed_topic_names=sorted(subscription.topic_names),
    )


def _target(target: Target) -> TargetAssignmentMember:
    return TargetAssignmentMember(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, partitions=list(numbers)) for topic_id, numbers in target.items()
        ]
    )


def _current(current: ShareCurrent) -> ShareGroupCurrentAssignment:
    return ShareGroupCurrentAssignment(
        member_epoch=current.member_epoch,
        previous_member_epoch=current.previous_member_epoch,
        state=current.state,
        assigned_partitions=[
            OwnedPartitions(topic_id=topic_id, partitions=sorted(numbers))
            for topic_id, numbers in current.assigned.items()
        ],
    )


def _state_partitions(partitions: StatePartitions) -> ShareGroupStatePartitions:
    return ShareGroupStatePartitions(
        initializing_topics=_named_rows(partitions.initializing),
        initialized_topics=_named_rows(partitions.initialized),
        deleting_topics=[
            ShareGroupStatePartitions.Deleting(topic_id=topic_id, topic_name=topic)
            for topic_id, topic in partitions.deleting.items()
        ],
    )


def _named_rows(topics: Mapping[bytes, NamedPartitions]) -> list[ShareGroupStatePartitions.Initialized]:
    return [
        ShareGroupStatePartitions.Initialized(topic_id=topic_id, topic_name=named.topic, partitions=[*named.partitions])
        for topic_id, named in topics.items()
    ]


def _by_id(rows: Iterable[ShareGroupStatePartitions.Initialized]) -> dict[bytes, NamedPartitions]:
    return {bytes(row.topic_id): NamedPartitions(row.topic_name, tuple(row.partitions)) for row in rows}


def _subscription(content: ShareGroupMember) -> ShareSubscription:
    return ShareSubscription(
        content.rack_id, content.client_id, content.client_host, frozenset(content.subscribed_topic_names)
    )


def _epoch_record(key: Any, content: Any, timestamp_ms: int) -> ShareRecord:
    if content is None:
        return ShareEpochRecord(key.group, None, 0, timestamp_ms)
    return ShareEpochRecord(key.group, content.epoch, content.metadata_hash, timestamp_ms)


def _target_record(key: Any, content: Any, timestamp_ms: int) -> ShareRecord:
    target = content and {bytes(row.topic_id): tuple(row.partitions) for row in content.topic_partitions}
    return ShareTargetRecord(key.group, key.member_id, target, timestamp_ms)


def _current_record(key: Any, content: Any, timestamp_ms: int) -> ShareRecord:
    current = content and ShareCurrent(
        content.member_epoch,
        content.previous_member_epoch,
        content.state,
        {bytes(row.topic_id): frozenset(row.partitions) for row in content.assigned_partitions},
    )
    return ShareCurrentRecord(key.group, key.member_id, current, timestamp_ms)


def _partitions_record(key: Any, content: Any, timestamp_ms: int) -> ShareRecord:
    partitions = content and StatePartitions(
        _by_id(content.initializing_topics),
        _by_id(content.initialized_topics),
        {bytes(row.topic_id): row.topic_name for row in content.deleting_topics},
    )
    return StatePartitionsRecord(key.group, partitions, timestamp_ms)


_MAKERS: dict[int, Callable[[Any, Any, int], ShareRecord]] = {
    SHARE_MEMBER: lambda key, content, timestamp_ms: ShareMemberRecord(
        key.group, key.member_id, content and _subscription(content), timestamp_ms
    ),
    SHARE_GROUP_METADATA: _epoch_record,
    SHARE_TARGET_ASSIGNMENT: lambda key, content, timestamp_ms: ShareTargetEpochRecord(
        key.group, content and content.assignment_epoch, timestamp_ms
    ),
    SHARE_TARGET_ASSIGNMENT_MEMBER: _target_record,
    SHARE_CURRENT_ASSIGNMENT: _current_record,
    SHARE_STATE_PARTITIONS: _partitions_record,
}
