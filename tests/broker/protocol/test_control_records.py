"""Markers of transactions, compared with bytes that a real Kafka 4.1 wrote."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.protocol.control_records import Marker, build_marker_batch, read_marker
from broker.protocol.record_batch import Record, build_batch, check_crc, parse_header
from broker.protocol.wire_types import DecodeError

COMMIT = (
    "000000000000000100000042000000000288b7588d003000000000000001a204ce5f57000001a204ce5f5700000000000000000001ffffffff"
    "000000012000000008000000010c00000000000000"
)
ABORT = (
    "0000000000000005000000420000000002246bbe15003000000000000001a204ce6710000001a204ce671000000000000000010000ffffffff"
    "000000012000000008000000000c00000000000000"
)


@pytest.mark.parametrize(
    ("written", "marker", "offset", "timestamp_ms"),
    [(COMMIT, Marker(0, 1, 0, True), 1, 1795376963415), (ABORT, Marker(1, 0, 0, False), 5, 1795376965392)],
)
def test_markers_are_read_and_written_as_kafka_writes_them(
    written: str, marker: Marker, offset: int, timestamp_ms: int
) -> None:
    assert read_marker(bytes.fromhex(written)) == marker
    built = build_marker_batch(marker, timestamp_ms=timestamp_ms, base_offset=offset, leader_epoch=0)
    assert built.hex() == written


@given(
    producer_id=st.integers(0, 2**63 - 1),
    epoch=st.integers(0, 2**15 - 1),
    coordinator_epoch=st.integers(-1, 2**31 - 1),
    is_commit=st.booleans(),
)
def test_a_marker_is_one_transactional_control_record(
    producer_id: int, epoch: int, coordinator_epoch: int, is_commit: bool
) -> None:
    marker = Marker(producer_id, epoch, coordinator_epoch, is_commit)
    batch = build_marker_batch(marker, timestamp_ms=7)
    header = parse_header(batch)
    assert (header.is_control, header.is_transactional, header.record_count, header.base_sequence) == (
        True,
        True,
        1,
        -1,
    )
    assert check_crc(batch, 0, header)
    assert read_marker(b"before" + batch, 6) == marker


def control(key: bytes | None, value: bytes | None) -> bytes:
    return build_batch([Record(0, 0, key, value)], producer_id=1, producer_epoch=2, is_control=True)


def test_newer_versions_are_read_like_version_0() -> None:
    assert read_marker(control(bytes.fromhex("00010001ff"), bytes.fromhex("000100000009ff"))) == Marker(1, 2, 9, True)


def test_other_batches_have_no_marker() -> None:
    assert read_marker(control(bytes.fromhex("00000002"), b"")) is None
    assert read_marker(build_batch([Record(0, 0, bytes.fromhex("00000001"), bytes(6))])) is None
    assert read_marker(build_batch([], base_offset=0, last_offset=0, is_control=True)) is None


@pytest.mark.parametrize(
    ("key", "value"),
    [(None, bytes(6)), (b"\0\0\0", bytes(6)), (bytes(4), b"\0\0\0"), (bytes(4), None), (b"\xff\xff\0\0", bytes(6))],
)
def test_a_malformed_control_record_is_refused(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(DecodeError):
        read_marker(control(key, value))
