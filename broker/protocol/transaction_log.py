"""Keys and values of the __transaction_state topic, byte for byte as Kafka writes them."""

from __future__ import annotations

from broker.protocol.codec import decode, encode
from broker.protocol.offsets_topic import partition_for as _partition_of_name
from broker.protocol.wire_types import ARRAY, INT8, INT16, INT32, INT64, STRING, DecodeError, Message, Struct, wire

TOPIC = "__transaction_state"
PARTITIONS = 50

_KEY_VERSION = 0
_VERSION_BYTES = 2


class TransactionLogKey(Message):
    VERSIONS = range(_KEY_VERSION + 1)

    transactional_id: str = wire(STRING)


class TransactionLogValue(Message):
    """v1 has tagged fields. Kafka writes v0 while the level of transaction.version is 0, otherwise v1.

    `transaction_partitions` is null in the state Empty. `previous_producer_id` used the last completed transaction,
    `next_producer_id` and `next_producer_epoch` are the newest that the producer was given (KIP-890).
    """

    VERSIONS, FLEXIBLE_SINCE = range(2), 1

    class Partitions(Struct):
        topic: str = wire(STRING)
        partition_ids: list[int] = wire(ARRAY(INT32))

    producer_id: int = wire(INT64)
    previous_producer_id: int = wire(INT64, default=-1, since=1, tag=0)
    next_producer_id: int = wire(INT64, default=-1, since=1, tag=1)
    producer_epoch: int = wire(INT16)
    next_producer_epoch: int = wire(INT16, default=-1, since=1, tag=3)
    transaction_timeout_ms: int = wire(INT32)
    transaction_status: int = wire(INT8)
    transaction_partitions: list[Partitions] | None = wire(ARRAY(Partitions), null_since=0)
    transaction_last_update_timestamp_ms: int = wire(INT64)
    transaction_start_timestamp_ms: int = wire(INT64)
    client_transaction_version: int = wire(INT16, default=0, since=1, tag=2)


def partition_for(transactional_id: str, partitions: int = PARTITIONS) -> int:
    """The partition of a transactional id."""
    return _partition_of_name(transactional_id, partitions)


def encode_key(transactional_id: str) -> bytes:
    key = TransactionLogKey(transactional_id=transactional_id)
    return _KEY_VERSION.to_bytes(_VERSION_BYTES, "big") + encode(key, _KEY_VERSION)


def decode_key(data: bytes) -> str | None:
    """The transactional id, or None for an unknown kind of key. DecodeError if malformed."""
    version = _version_of(data)
    if version not in TransactionLogKey.VERSIONS:
        return None
    return decode(TransactionLogKey, data, version, _VERSION_BYTES).transactional_id


def encode_value(value: TransactionLogValue, version: int) -> bytes:
    """The value after its version. EncodeError if a value does not fit."""
    return version.to_bytes(_VERSION_BYTES, "big") + encode(value, version)


def decode_value(data: bytes) -> TransactionLogValue:
    """Decode the value of a transactional id. The caller handles tombstones. DecodeError if malformed or unknown."""
    version = _version_of(data)
    if version not in TransactionLogValue.VERSIONS:
        raise DecodeError(f"TransactionLogValue version {version} is not known")
    return decode(TransactionLogValue, data, version, _VERSION_BYTES)


def _version_of(data: bytes) -> int:
    if len(data) < _VERSION_BYTES:
        raise DecodeError("a key or value is shorter than its version")
    return int.from_bytes(data[:_VERSION_BYTES], "big", signed=True)
