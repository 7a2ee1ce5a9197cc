"""Subscriptions and assignments that consumers exchange through the group, opaque to the coordinator."""

from __future__ import annotations

from typing import TypeVar

from broker.protocol.codec import decode, encode
from broker.protocol.wire_types import ARRAY, BYTES, INT32, STRING, DecodeError, Message, Struct, wire

PROTOCOL_TYPE = "consumer"

_VERSION_BYTES = 2

B = TypeVar("B", bound=Message)


class ConsumerProtocolSubscription(Message):
    """v1 adds the owned partitions (KIP-429); v2 adds their generation (KIP-792); v3 adds the rack (KIP-881)."""

    VERSIONS = range(4)

    class TopicPartition(Struct):
        topic: str = wire(STRING)
        partitions: list[int] = wire(ARRAY(INT32))

    topics: list[str] = wire(ARRAY(STRING))
    user_data: bytes | None = wire(BYTES, default=None, null_since=0)
    owned_partitions: list[TopicPartition] = wire(ARRAY(TopicPartition), default=[], since=1)
    generation_id: int = wire(INT32, default=-1, since=2)
    rack_id: str | None = wire(STRING, default=None, since=3, null_since=3)


class ConsumerProtocolAssignment(Message):
    """All versions are identical; the leader uses the version of the subscriptions."""

    VERSIONS = range(4)

    class TopicPartition(Struct):
        topic: str = wire(STRING)
        partitions: list[int] = wire(ARRAY(INT32))

    assigned_partitions: list[TopicPartition] = wire(ARRAY(TopicPartition))
    user_data: bytes | None = wire(BYTES, default=None, null_since=0)


def encode_blob(message: ConsumerProtocolSubscription | ConsumerProtocolAssignment, version: int = 3) -> bytes:
    """The message after its version, as in JoinGroup and SyncGroup."""
    return version.to_bytes(_VERSION_BYTES, "big") + encode(message, version)


def decode_subscription(blob: bytes) -> ConsumerProtocolSubscription:
    """Decode the metadata of a member. DecodeError if it is not a subscription."""
    return _decode_blob(ConsumerProtocolSubscription, blob)


def decode_assignment(blob: bytes) -> ConsumerProtocolAssignment:
    """Decode the assignment of a member. DecodeError if it is not an assignment, or empty."""
    return _decode_blob(ConsumerProtocolAssignment, blob)


def _decode_blob(cls: type[B], blob: bytes) -> B:
    version = int.from_bytes(blob[:_VERSION_BYTES], "big", signed=True)
    if len(blob) < _VERSION_BYTES or version < 0:
        raise DecodeError(f"{cls.__name__} does not start with a version")
    # Later versions only add fields at the end.
    return decode(cls, blob, min(version, cls.VERSIONS[-1]), _VERSION_BYTES)
