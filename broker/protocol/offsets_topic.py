"""Keys and values of the __consumer_offsets topic, byte for byte as Kafka writes them."""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import TypeAlias, TypeVar

from broker.light_named_tuples import NamedTuple
from broker.protocol.codec import decode, encode
from broker.protocol.wire_types import (
    ARRAY,
    BYTES,
    INT32,
    INT64,
    STRING,
    DecodeError,
    EncodeError,
    Message,
    Struct,
    wire,
)

TOPIC = "__consumer_offsets"
PARTITIONS = 50

_VERSION_BYTES = 2
# A key below this size has no length that, with its sign, would be negative.
_LONGEST = 1 << 15
_PARTITION = struct.Struct(">i")
_VALUE_HEAD = struct.Struct(">hqih")  # version, offset, leader epoch, length of the metadata
_PLAIN_VALUE = struct.Struct(">hqihq")  # the same, without metadata, and the timestamp
_NO_EXPIRY = -1

V = TypeVar("V", bound=Message)


class OffsetCommitKey(NamedTuple):
    """Key of a committed offset."""

    group: str
    topic: str
    partition: int


class GroupMetadataKey(NamedTuple):
    """Key of a group."""

    group: str


Key: TypeAlias = OffsetCommitKey | GroupMetadataKey


class _OffsetCommitKey(Message):
    """v0 and v1 are identical; the version identifies the kind of key."""

    VERSIONS = range(2)

    group: str = wire(STRING)
    topic: str = wire(STRING)
    partition: int = wire(INT32)


class _GroupMetadataKey(Message):
    VERSIONS = range(2, 3)

    group: str = wire(STRING)


class OffsetCommitValue(Message):
    """Only v1 has the expiry; v3 adds the leader epoch; v4 adds tagged fields."""

    VERSIONS, FLEXIBLE_SINCE = range(5), 4

    offset: int = wire(INT64)
    leader_epoch: int = wire(INT32, default=-1, since=3)
    metadata: str = wire(STRING, default="")
    commit_timestamp: int = wire(INT64)
    expire_timestamp: int = wire(INT64, default=_NO_EXPIRY, since=1, until=1)


class GroupMetadataValue(Message):
    """v1 adds the rebalance timeout; v2 adds the time of the last state change; v3 adds instance ids; v4 adds tagged fields."""

    VERSIONS, FLEXIBLE_SINCE = range(5), 4

    class Member(Struct):
        member_id: str = wire(STRING)
        group_instance_id: str | None = wire(STRING, default=None, since=3, null_since=3)
        client_id: str = wire(STRING)
        client_host: str = wire(STRING)
        rebalance_timeout: int = wire(INT32, default=-1, since=1)
        session_timeout: int = wire(INT32)
        subscription: bytes = wire(BYTES)
        assignment: bytes = wire(BYTES)

    protocol_type: str = wire(STRING)
    generation: int = wire(INT32)
    protocol: str | None = wire(STRING, null_since=0)
    leader: str | None = wire(STRING, null_since=0)
    current_state_timestamp: int = wire(INT64, default=-1, since=2)
    members: list[Member] = wire(ARRAY(Member), default=[])


Value: TypeAlias = OffsetCommitValue | GroupMetadataValue


@lru_cache(maxsize=1024)
def partition_for(group_id: str, partitions: int = PARTITIONS) -> int:
    """The partition of a group: the absolute value of Java's hash of its name, modulo `partitions`."""
    units = group_id.encode("utf-16-be", "surrogatepass")
    hashed = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        hashed = (31 * hashed + (high << 8 | low)) & 0xFFFFFFFF
    signed = hashed - (1 << 32) if hashed >> 31 else hashed
    # The smallest int has no absolute value in Java; Kafka uses 0.
    return 0 if signed == -(1 << 31) else abs(signed) % partitions


def encode_key(key: Key) -> bytes:
    """The key after its version: 1 for an offset, 2 for a group."""
    if isinstance(key, OffsetCommitKey):
        return encode_offset_key(*key)
    return _with_version(_GroupMetadataKey(group=key.group), 2)


def encode_offset_key(group: str, topic: str, partition: int) -> bytes:
    return _offset_key_of_topic(group, topic) + _PARTITION.pack(partition)


@lru_cache(maxsize=256)
def _offset_key_of_topic(group: str, topic: str) -> bytes:
    """The part of a key that the offsets of a topic share: a commit often names many of its partitions."""
    group_name, topic_name = group.encode(), topic.encode()
    try:
        lengths = struct.pack(">hh", 1, len(group_name)), struct.pack(">h", len(topic_name))
    except struct.error as problem:
        raise EncodeError(f"the key of an offset: {problem}") from problem
    return lengths[0] + group_name + lengths[1] + topic_name


def decode_key(data: bytes) -> Key | None:
    """The key, or None for an unknown kind, as of newer group protocols. DecodeError if malformed."""
    version = _version_of(data)
    if version in _OffsetCommitKey.VERSIONS:
        topic_at = 6 + int.from_bytes(data[2:4], "big")
        if len(data) == topic_at + int.from_bytes(data[topic_at - 2 : topic_at], "big") + 4 < _LONGEST:
            group, topic = _text(data[4 : topic_at - 2]), _text(data[topic_at:-4])
            return OffsetCommitKey(group, topic, int.from_bytes(data[-4:], "big", signed=True))
        commit = decode(_OffsetCommitKey, data, version, _VERSION_BYTES)
        return OffsetCommitKey(commit.group, commit.topic, commit.partition)
    if version in _GroupMetadataKey.VERSIONS:
        return GroupMetadataKey(decode(_GroupMetadataKey, data, version, _VERSION_BYTES).group)
    return None


def encode_value(value: Value) -> bytes:
    """The value after its version: 3, or 1 for an offset with an expiry."""
    if not isinstance(value, OffsetCommitValue):
        return _with_version(value, 3)
    if value.expire_timestamp != _NO_EXPIRY:
        return _with_version(value, 1)
    return encode_offset_value(value.offset, value.leader_epoch, value.metadata, value.commit_timestamp)


def encode_offset_value(offset: int, leader_epoch: int, metadata: str, commit_timestamp: int) -> bytes:
    """The value of an offset without an expiry."""
    try:
        if not metadata:
            return _PLAIN_VALUE.pack(3, offset, leader_epoch, 0, commit_timestamp)
        text = metadata.encode()
        return struct.pack(f">hqih{len(text)}sq", 3, offset, leader_epoch, len(text), text, commit_timestamp)
    except struct.error as problem:
        raise EncodeError(f"the value of an offset: {problem}") from problem


def decode_offset_value(data: bytes) -> OffsetCommitValue:
    """Decode the value of an offset key. The caller handles tombstones."""
    if len(data) >= _VALUE_HEAD.size:
        version, offset, leader_epoch, size = _VALUE_HEAD.unpack_from(data)
        if version == 3 and len(data) == _VALUE_HEAD.size + size + 8 and size >= 0:
            return OffsetCommitValue(
                offset=offset,
                leader_epoch=leader_epoch,
                metadata=_text(data[_VALUE_HEAD.size : -8]),
                commit_timestamp=int.from_bytes(data[-8:], "big", signed=True),
            )
    return _decode_value(OffsetCommitValue, data)


def decode_group_value(data: bytes) -> GroupMetadataValue:
    """Decode the value of a group key. The caller handles tombstones."""
    return _decode_value(GroupMetadataValue, data)


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise DecodeError(f"a key or value is not text: {error}") from error


def _with_version(message: Message, version: int) -> bytes:
    return version.to_bytes(_VERSION_BYTES, "big") + encode(message, version)


def _decode_value(cls: type[V], data: bytes) -> V:
    version = _version_of(data)
    if version not in cls.VERSIONS:
        raise DecodeError(f"{cls.__name__} version {version} is not known")
    return decode(cls, data, version, _VERSION_BYTES)


def _version_of(data: bytes) -> int:
    if len(data) < _VERSION_BYTES:
        raise DecodeError("a key or value is shorter than its version")
    return int.from_bytes(data[:_VERSION_BYTES], "big", signed=True)
