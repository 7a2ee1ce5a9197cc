"""Keys and values of __transaction_state, compared with bytes that a real Kafka 4.1 wrote."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.protocol.codec import DecodeError
from broker.protocol.transaction_log import (
    TransactionLogValue,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
    partition_for,
)

COMMITTED_OFFSETS = TransactionLogValue.Partitions(topic="__consumer_offsets", partition_ids=[3])
BOTH = TransactionLogValue.Partitions(topic="pt", partition_ids=[0, 1])
# What Kafka wrote for a new id, an ongoing, a prepared and a completed transaction under each level of transaction.version.
WRITTEN = {
    "level 0, Empty": (
        "0000000000000000000200000000ea6000ffffffff000001a204cc7001ffffffffffffffff",
        TransactionLogValue(
            producer_id=2,
            producer_epoch=0,
            transaction_timeout_ms=60_000,
            transaction_status=0,
            transaction_partitions=None,
            transaction_last_update_timestamp_ms=1795376836609,
            transaction_start_timestamp_ms=-1,
        ),
    ),
    "level 0, PrepareCommit": (
        (
            "0000000000000000000200000000ea6002000000020002707400000002000000000000000100125f5f636f6e73756d65725f6f6666736574"
            "730000000100000003000001a204cc700c000001a204cc7003"
        ),
        TransactionLogValue(
            producer_id=2,
            producer_epoch=0,
            transaction_timeout_ms=60_000,
            transaction_status=2,
            transaction_partitions=[BOTH, COMMITTED_OFFSETS],
            transaction_last_update_timestamp_ms=1795376836620,
            transaction_start_timestamp_ms=1795376836611,
        ),
    ),
    "level 1, Ongoing": (
        "0001000000000000000100000000ea60010203707403000000000000000100000001a204cc6960000001a204cc696000",
        TransactionLogValue(
            producer_id=1,
            producer_epoch=0,
            transaction_timeout_ms=60_000,
            transaction_status=1,
            transaction_partitions=[BOTH],
            transaction_last_update_timestamp_ms=1795376834912,
            transaction_start_timestamp_ms=1795376834912,
        ),
    ),
    "level 2, PrepareAbort": (
        (
            "0001000000000000000000020000ea60030303707403000000000000000100135f5f636f6e73756d65725f6f666673657473020000000300"
            "000001a204cc641a000001a204cc64030102020002"
        ),
        TransactionLogValue(
            producer_id=0,
            producer_epoch=2,
            transaction_timeout_ms=60_000,
            transaction_status=3,
            transaction_partitions=[BOTH, COMMITTED_OFFSETS],
            transaction_last_update_timestamp_ms=1795376833562,
            transaction_start_timestamp_ms=1795376833539,
            client_transaction_version=2,
        ),
    ),
    "level 2, CompleteAbort": (
        "0001000000000000000000020000ea600501000001a204cc641b000001a204cc64030102020002",
        TransactionLogValue(
            producer_id=0,
            producer_epoch=2,
            transaction_timeout_ms=60_000,
            transaction_status=5,
            transaction_partitions=[],
            transaction_last_update_timestamp_ms=1795376833563,
            transaction_start_timestamp_ms=1795376833539,
            client_transaction_version=2,
        ),
    ),
}


@pytest.mark.parametrize("written", WRITTEN)
def test_values_are_read_and_written_as_kafka_writes_them(written: str) -> None:
    data, value = WRITTEN[written]
    assert decode_value(bytes.fromhex(data)) == value
    assert encode_value(value, version=0 if "level 0" in written else 1).hex() == data


def test_keys_match_kafka() -> None:
    assert encode_key("wire-v1").hex() == "00000007776972652d7631"
    assert decode_key(encode_key("wire-v1")) == "wire-v1"


def test_partitions_match_kafka() -> None:
    assert [partition_for(f"wire-v{number}") for number in range(3)] == [30, 31, 32]


@given(
    previous=st.integers(-1, 2**63 - 1),
    following=st.integers(-1, 2**63 - 1),
    epoch=st.integers(-1, 2**15 - 1),
    version=st.integers(0, 2),
)
def test_version_1_keeps_the_tagged_fields_and_version_0_drops_them(
    previous: int, following: int, epoch: int, version: int
) -> None:
    _, value = WRITTEN["level 1, Ongoing"]
    tagged = {"previous_producer_id": previous, "next_producer_id": following, "next_producer_epoch": epoch}
    full = TransactionLogValue(
        **{field.name: getattr(value, field.name) for field in TransactionLogValue.FIELDS}
        | tagged
        | {"client_transaction_version": version}
    )
    assert decode_value(encode_value(full, 1)) == full
    assert decode_value(encode_value(full, 0)) == value


def test_unknown_kinds_of_keys_are_skipped_and_unknown_values_refused() -> None:
    assert decode_key(b"\0\x01whatever") is None
    with pytest.raises(DecodeError, match="version 2 is not known"):
        decode_value(b"\0\x02" + bytes(60))


@pytest.mark.parametrize("data", [b"", b"\0", encode_key("id")[:-1], bytes.fromhex("0001000000")])
def test_cut_short_data_is_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_key(data) if data[:2] != b"\0\1" else decode_value(data)
