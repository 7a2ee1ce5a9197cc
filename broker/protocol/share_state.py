"""Keys and values of the __share_group_state topic (KIP-932), byte for byte as Kafka writes them."""

from __future__ import annotations

from typing import TypeAlias

from broker.light_named_tuples import NamedTuple
from broker.protocol.codec import decode, encode
from broker.protocol.offsets_topic import partition_for as _partition_of_name
from broker.protocol.uuids import spelled
from broker.protocol.wire_types import (
    ARRAY,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    UUID,
    DecodeError,
    Message,
    Struct,
    wire,
)

TOPIC = "__share_group_state"
PARTITIONS = 50

_TYPE_BYTES = 2
_VALUE_VERSION = 0


class SharePartitionKey(NamedTuple):
    """A partition of a share group."""

    group_id: str
    topic_id: bytes
    partition: int


class ShareStateKey(Message):
    """The key after its type, which is 0 for a snapshot and 1 for an update."""

    VERSIONS = range(1)

    group_id: str = wire(STRING)
    topic_id: bytes = wire(UUID)
    partition: int = wire(INT32)


class ShareSnapshotValue(Message):
    """The whole state of a share partition. The start offset is -1 before the first acquisition; times are in ms since 1970."""

    VERSIONS, FLEXIBLE_SINCE = range(1), 0

    class StateBatch(Struct):
        first_offset: int = wire(INT64)
        last_offset: int = wire(INT64)
        delivery_state: int = wire(INT8)
        delivery_count: int = wire(INT16)

    snapshot_epoch: int = wire(INT32)
    state_epoch: int = wire(INT32)
    leader_epoch: int = wire(INT32)
    start_offset: int = wire(INT64)
    create_timestamp: int = wire(INT64)
    write_timestamp: int = wire(INT64)
    state_batches: list[StateBatch] = wire(ARRAY(StateBatch))


class ShareUpdateValue(Message):
    """What has changed since the snapshot with this epoch or a later update. A start offset of -1 means the same as before."""

    VERSIONS, FLEXIBLE_SINCE = range(1), 0

    class StateBatch(Struct):
        first_offset: int = wire(INT64)
        last_offset: int = wire(INT64)
        delivery_state: int = wire(INT8)
        delivery_count: int = wire(INT16)

    snapshot_epoch: int = wire(INT32)
    leader_epoch: int = wire(INT32)
    start_offset: int = wire(INT64)
    state_batches: list[StateBatch] = wire(ARRAY(StateBatch))


ShareStateValue: TypeAlias = "ShareSnapshotValue | ShareUpdateValue"
_TYPES: list[type[ShareStateValue]] = [ShareSnapshotValue, ShareUpdateValue]


def partition_for(key: SharePartitionKey, partitions: int = PARTITIONS) -> int:
    """The partition of `__share_group_state` that has the state of this share partition."""
    return _partition_of_name(f"{key.group_id}:{spelled(key.topic_id)}:{key.partition}", partitions)


def encode_key(key: SharePartitionKey, kind: type[ShareStateValue]) -> bytes:
    """The key of a value of this kind."""
    message = ShareStateKey(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition)
    return _TYPES.index(kind).to_bytes(_TYPE_BYTES, "big") + encode(message, 0)


def encode_value(value: ShareStateValue) -> bytes:
    return _VALUE_VERSION.to_bytes(_TYPE_BYTES, "big") + encode(value, _VALUE_VERSION)


def decode_key(data: bytes) -> tuple[SharePartitionKey, type[ShareStateValue]] | None:
    """The share partition and the kind of its value; None for an unknown type. DecodeError if malformed."""
    number = _number(data)
    if not 0 <= number < len(_TYPES):
        return None
    key = decode(ShareStateKey, data, 0, _TYPE_BYTES)
    return SharePartitionKey(key.group_id, key.topic_id, key.partition), _TYPES[number]


def decode_value(kind: type[ShareStateValue], data: bytes) -> ShareStateValue:
    """The caller handles tombstones. DecodeError if malformed or of an unknown version."""
    version = _number(data)
    if version != _VALUE_VERSION:
        raise DecodeError(f"{kind.__name__} version {version} is not known")
    return decode(kind, data, version, _TYPE_BYTES)


def _number(data: bytes) -> int:
    if len(data) < _TYPE_BYTES:
        raise DecodeError("a key or value is shorter than its version")
    return int.from_bytes(data[:_TYPE_BYTES], "big", signed=True)
