"""Keys and values that Kafka writes to __consumer_offsets for consumer groups of the newer protocol (KIP-848), and keys of share groups."""

from __future__ import annotations

from importlib import import_module

from broker.protocol.codec import decode, encode
from broker.protocol.wire_types import (
    ARRAY,
    BYTES,
    INT8,
    INT32,
    INT64,
    STRING,
    UUID,
    DecodeError,
    Message,
    Struct,
    wire,
)

_VERSION_BYTES = 2
# The version in which values are written.
_VALUE_VERSION = 0
GROUP_METADATA, PARTITION_METADATA, MEMBER = 3, 4, 5
TARGET_ASSIGNMENT, TARGET_ASSIGNMENT_MEMBER, CURRENT_ASSIGNMENT = 6, 7, 8
REGULAR_EXPRESSION = 16
# Of share groups (KIP-932).
SHARE_MEMBER, SHARE_GROUP_METADATA, SHARE_TARGET_ASSIGNMENT, SHARE_TARGET_ASSIGNMENT_MEMBER = 10, 11, 12, 13
SHARE_CURRENT_ASSIGNMENT, SHARE_STATE_PARTITIONS = 14, 15
# The version of a key says what it is; from Kafka's CoordinatorRecordType.
KINDS = {
    3: "consumer-group-metadata",
    4: "consumer-group-partition-metadata",
    5: "consumer-group-member",
    6: "consumer-group-target-assignment",
    7: "consumer-group-target-assignment-member",
    8: "consumer-group-current-assignment",
    9: "share-group-partition-metadata",
    10: "share-group-member",
    11: "share-group-metadata",
    12: "share-group-target-assignment",
    13: "share-group-target-assignment-member",
    14: "share-group-current-assignment",
    15: "share-group-state-partitions",
    16: "consumer-group-regular-expression",
    17: "streams-group-metadata",
    19: "streams-group-member",
    20: "streams-group-target-assignment",
    21: "streams-group-target-assignment-member",
    22: "streams-group-current-assignment",
    23: "streams-group-topology",
}


class GroupKey(Message):
    VERSIONS = range(24)

    group: str = wire(STRING)


class MemberKey(Message):
    VERSIONS = range(24)

    group: str = wire(STRING)
    member_id: str = wire(STRING)


class ExpressionKey(Message):
    VERSIONS = range(24)

    group: str = wire(STRING)
    regular_expression: str = wire(STRING)


class TopicPartitions(Struct):
    topic_id: bytes = wire(UUID)
    partitions: list[int] = wire(ARRAY(INT32))


class ConsumerGroupMetadata(Message):
    VERSIONS, FLEXIBLE_SINCE = range(1), 0

    epoch: int = wire(INT32)
    metadata_hash: int = wire(INT64, default=0, tag=0)


class ConsumerGroupMember(Message):
    """`classic_member` is what a member that still speaks the classic protocol has joined with."""

    VERSIONS, FLEXIBLE_SINCE = range(1), 0

    class ClassicProtocol(Struct):
        name: str = wire(STRING)
        metadata: bytes = wire(BYTES)

    class ClassicMember(Struct):
        session_timeout_ms: int = wire(INT32)
        supported_protocols: list[ConsumerGroupMember.ClassicProtocol] = wire(ARRAY("ClassicProtocol"))

    instance_id: str | None = wire(STRING, null_since=0)
    rack_id: str | None = wire(STRING, null_since=0)
    client_id: str = wire(STRING)
    client_host: str = wire(STRING)
    subscribed_topic_names: list[str] = wire(ARRAY(STRING))
    subscribed_topic_regex: str | None = wire(STRING, null_since=0)
    rebalance_timeout_ms: int = wire(INT32)
    server_assignor: str | None = wire(STRING, null_since=0)
    classic_member: ClassicMember | None = wire(ClassicMember, default=None, null_since=0, tag=0)


class TargetAssignment(Message):
    VERSIONS, FLEXIBLE_SINCE = range(1), 0

    assignment_epoch: int = wire(INT32)


class TargetAssignmentMember(Message):
    VERSIONS, FLEXIBLE_SINCE = range(1), 0

    topic_partitions: list[TopicPartitions] = wire(ARRAY(TopicPartitions))


class CurrentAssignment(Message):
    VERSIONS, FLEXIBLE_SINCE = range(1), 0

    member_epoch: int = wire(INT32)
    previous_member_epoch: int = wire(INT32)
    state: int = wire(INT8)
    assigned_partitions: list[TopicPartitions] = wire(ARRAY(TopicPartitions))
    partitions_pending_revocation: list[TopicPartitions] = wire(ARRAY(TopicPartitions))


class RegularExpression(Message):
    """The topics that match, when they were looked up, and in which version of the metadata."""

    VERSIONS, FLEXIBLE_SINCE = range(1), 0

    topics: list[str] = wire(ARRAY(STRING))
    version: int = wire(INT64)
    timestamp: int = wire(INT64)


_MEMBER_KEYS = (5, 7, 8, 10, 13, 14, 19, 21, 22)
_EXPRESSION_KEYS = (16,)
_VALUES: dict[int, type[Message]] = {
    3: ConsumerGroupMetadata,
    5: ConsumerGroupMember,
    6: TargetAssignment,
    7: TargetAssignmentMember,
    8: CurrentAssignment,
    12: TargetAssignment,
    13: TargetAssignmentMember,
    16: RegularExpression,
}
# In `share_group_records`, which is loaded with the first value of a share group.
_SHARE_VALUES = {
    10: "ShareGroupMember",
    11: "ShareGroupMetadata",
    14: "ShareGroupCurrentAssignment",
    15: "ShareGroupStatePartitions",
}


def decode_newer_key(data: bytes) -> tuple[str, Message] | None:
    """The kind of the key and the key; None for a kind that is not known. DecodeError if malformed."""
    number = kind_of(data)
    if number not in KINDS:
        return None
    found = MemberKey if number in _MEMBER_KEYS else ExpressionKey if number in _EXPRESSION_KEYS else GroupKey
    return KINDS[number], decode(found, data, number, _VERSION_BYTES)


def decode_newer_value(key: bytes, data: bytes) -> Message | None:
    """The value that belongs to a key, None if its format is not known. DecodeError if malformed."""
    kind = kind_of(key)
    found = _VALUES.get(kind)
    if kind in _SHARE_VALUES:
        found = getattr(import_module("broker.protocol.share_group_records"), _SHARE_VALUES[kind])
    version = kind_of(data)
    if found is None or version not in found.VERSIONS:
        return None
    return decode(found, data, version, _VERSION_BYTES)


def encode_newer_key(number: int, group: str, name: str = "") -> bytes:
    """The key of a record of this kind; `name` is the member id or the regular expression, if its kind has one."""
    if number in _MEMBER_KEYS:
        return _with_version(number, MemberKey(group=group, member_id=name))
    if number in _EXPRESSION_KEYS:
        return _with_version(number, ExpressionKey(group=group, regular_expression=name))
    return _with_version(number, GroupKey(group=group))


def encode_newer_value(value: Message) -> bytes:
    return _with_version(_VALUE_VERSION, value)


def kind_of(data: bytes) -> int:
    """The number that a key starts with, or the version of a value. DecodeError if it is too short."""
    if len(data) < _VERSION_BYTES:
        raise DecodeError("a key or value is shorter than its version")
    return int.from_bytes(data[:_VERSION_BYTES], "big", signed=True)


def _with_version(version: int, message: Message) -> bytes:
    return version.to_bytes(_VERSION_BYTES, "big") + encode(message, version)
