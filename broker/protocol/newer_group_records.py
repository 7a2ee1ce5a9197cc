"""Keys and values that Kafka writes to __consumer_offsets for consumer groups of the newer protocol (KIP-848)."""

from __future__ import annotations

from broker.protocol.codec import decode
from broker.protocol.wire_types import ARRAY, INT8, INT32, STRING, UUID, DecodeError, Message, Struct, wire

_VERSION_BYTES = 2
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


class _ExpressionKey(Message):
    VERSIONS = range(24)

    group: str = wire(STRING)
    regular_expression: str = wire(STRING)


class TopicPartitions(Struct):
    topic_id: bytes = wire(UUID)
    partitions: list[int] = wire(ARRAY(INT32))


class ConsumerGroupMetadata(Message):
    VERSIONS, FLEXIBLE_SINCE = range(1), 0

    epoch: int = wire(INT32)


class ConsumerGroupMember(Message):
    VERSIONS, FLEXIBLE_SINCE = range(1), 0

    instance_id: str | None = wire(STRING, null_since=0)
    rack_id: str | None = wire(STRING, null_since=0)
    client_id: str = wire(STRING)
    client_host: str = wire(STRING)
    subscribed_topic_names: list[str] = wire(ARRAY(STRING))
    subscribed_topic_regex: str | None = wire(STRING, null_since=0)
    rebalance_timeout_ms: int = wire(INT32)
    server_assignor: str | None = wire(STRING, null_since=0)


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


_MEMBER_KEYS = (5, 7, 8, 10, 13, 14, 19, 21, 22)
_EXPRESSION_KEYS = (16,)
_VALUES: dict[int, type[Message]] = {
    3: ConsumerGroupMetadata,
    5: ConsumerGroupMember,
    6: TargetAssignment,
    7: TargetAssignmentMember,
    8: CurrentAssignment,
}


def decode_newer_key(data: bytes) -> tuple[str, Message] | None:
    """The kind of the key and the key; None for a kind that is not known. DecodeError if malformed."""
    number = _version_of(data)
    if number not in KINDS:
        return None
    found = MemberKey if number in _MEMBER_KEYS else _ExpressionKey if number in _EXPRESSION_KEYS else GroupKey
    return KINDS[number], decode(found, data, number, _VERSION_BYTES)


def decode_newer_value(key: bytes, data: bytes) -> Message | None:
    """The value that belongs to a key, None if its format is not known. DecodeError if malformed."""
    found = _VALUES.get(_version_of(key))
    version = _version_of(data)
    if found is None or version not in found.VERSIONS:
        return None
    return decode(found, data, version, _VERSION_BYTES)


def _version_of(data: bytes) -> int:
    if len(data) < _VERSION_BYTES:
        raise DecodeError("a key or value is shorter than its version")
    return int.from_bytes(data[:_VERSION_BYTES], "big", signed=True)
