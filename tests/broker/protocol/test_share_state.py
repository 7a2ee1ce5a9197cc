"""Keys and values of __share_group_state, compared with bytes that Kafka 4.1 wrote."""

from __future__ import annotations

import pytest

from broker.protocol.codec import DecodeError
from broker.protocol.share_state import (
    SharePartitionKey,
    ShareSnapshotValue,
    ShareStateValue,
    ShareUpdateValue,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
    partition_for,
)

KEY = SharePartitionKey("gs1", bytes(7) + b"\x01" + bytes(7) + b"\x02", 7)
BATCHES = [(10, 14, 0, 1), (15, 15, 4, 5)]
FIELDS = ("first_offset", "last_offset", "delivery_state", "delivery_count")
SNAPSHOT = ShareSnapshotValue(
    snapshot_epoch=3,
    state_epoch=4,
    leader_epoch=5,
    start_offset=10,
    create_timestamp=1_000,
    write_timestamp=2_000,
    state_batches=[ShareSnapshotValue.StateBatch(**dict(zip(FIELDS, batch, strict=True))) for batch in BATCHES],
)
UPDATE = ShareUpdateValue(
    snapshot_epoch=3,
    leader_epoch=5,
    start_offset=10,
    state_batches=[ShareUpdateValue.StateBatch(**dict(zip(FIELDS, batch, strict=True))) for batch in BATCHES],
)
WRITTEN_KEY = "000367733100000000000000010000000000000002" + "00000007"
WRITTEN_BATCHES = "03000000000000000a000000000000000e00000100000000000000000f000000000000000f0400050000"
WRITTEN = [
    (
        SNAPSHOT,
        "0000" + WRITTEN_KEY,
        "0000000000030000000400000005000000000000000a00000000000003e800000000000007d0" + WRITTEN_BATCHES,
    ),
    (UPDATE, "0001" + WRITTEN_KEY, "00000000000300000005000000000000000a" + WRITTEN_BATCHES),
]


@pytest.mark.parametrize(("value", "key", "written"), WRITTEN, ids=["snapshot", "update"])
def test_keys_and_values_are_those_of_kafka(value: ShareStateValue, key: str, written: str) -> None:
    assert encode_key(KEY, type(value)).hex() == key
    assert decode_key(bytes.fromhex(key)) == (KEY, type(value))
    assert encode_value(value).hex() == written
    assert decode_value(type(value), bytes.fromhex(written)) == value


def test_the_partition_is_that_of_kafka() -> None:
    assert partition_for(KEY) == 6


def test_unknown_keys_are_skipped_and_unknown_values_refused() -> None:
    assert decode_key(b"\x00\x02" + bytes(30)) is None
    with pytest.raises(DecodeError, match="ShareUpdateValue version 1 is not known"):
        decode_value(ShareUpdateValue, b"\x00\x01" + bytes(30))
    with pytest.raises(DecodeError, match="shorter than its version"):
        decode_key(b"\x00")
