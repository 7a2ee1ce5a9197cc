"""Which records a Fetch response yields, and where each partition continues."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.protocol.compression import Codec
from broker.protocol.record_batch import Record, build_batch
from kgctl.client.consumer import fetched
from kgctl.client.consumer.fetched import AbortedTransaction, Damaged, Fetched
from kgctl.model.topic_partition import TopicPartition

P = TopicPartition("t", 0)
ABORT, COMMIT = struct.pack(">hh", 0, 0), struct.pack(">hh", 0, 1)


def batch(first: int, count: int, codec: Codec = Codec.NONE, producer_id: int | None = None) -> bytes:
    """Records with their offset as value; of a transaction where a producer is given."""
    records = [Record(first + n, 0, None, str(first + n).encode(), ()) for n in range(count)]
    if producer_id is None:
        return build_batch(records, codec=codec)
    return build_batch(
        records, codec=codec, producer_id=producer_id, producer_epoch=0, base_sequence=0, is_transactional=True
    )


def marker(offset: int, producer_id: int, kind: bytes) -> bytes:
    record = Record(offset, 0, kind, struct.pack(">hi", 0, 0), ())
    return build_batch([record], producer_id=producer_id, producer_epoch=0, is_transactional=True, is_control=True)


def read(
    raw: bytes, offset: int = 0, limit: int | None = None, aborted: list[AbortedTransaction] | None = None
) -> list[int]:
    fetched = Fetched(P, raw, offset, limit, aborted)
    return [record.offset for one in fetched.batches() for record in one.records]


@pytest.mark.parametrize("codec", Codec)
@given(start=st.integers(0, 9))
def test_records_before_the_requested_offset_are_skipped_inside_a_batch_of_any_codec(codec: Codec, start: int) -> None:
    raw = batch(0, 5, codec) + batch(5, 5, codec)
    assert read(raw, start) == list(range(start, 10))


# Kafka's own clients read them, whatever their size.
@pytest.mark.parametrize("codec", [Codec.SNAPPY, Codec.ZSTD])
def test_a_small_batch_that_holds_seventy_mebibytes_is_read(codec: Codec) -> None:
    raw = build_batch([Record(0, 0, None, bytes(70 << 20), ())], codec=codec)
    assert len(raw) < 6 << 20
    ((record,),) = [one.records for one in Fetched(P, raw, 0).batches()]
    assert record.value is not None
    assert len(record.value) == 70 << 20


def test_a_batch_that_would_fill_all_memory_is_damaged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetched, "MOST_PLAIN_BYTES", 1 << 20)
    with pytest.raises(Damaged, match="t-0, offset 0: compressed records are damaged or exceed 1048576 bytes"):
        read(build_batch([Record(0, 0, None, bytes(2 << 20), ())], codec=Codec.ZSTD))


def test_a_batch_before_the_requested_offset_is_not_decoded() -> None:
    whole = batch(0, 5)
    header_only = whole[:61] + b"\xff" * (len(whole) - 61)
    with pytest.raises(Damaged):
        read(header_only + batch(5, 1), 0)
    assert read(batch(0, 5) + batch(5, 1), 5) == [5]


def test_reading_continues_after_the_last_complete_batch() -> None:
    raw = batch(0, 5) + batch(5, 5)
    assert Fetched(P, raw, 0).next_offset() == 10
    assert Fetched(P, raw[:-1], 0).next_offset() == 5
    assert read(raw[:-1]) == [0, 1, 2, 3, 4]
    assert Fetched(P, raw[:30], 3).next_offset() == 3


def test_reading_continues_after_records_compacted_from_the_end_of_a_batch() -> None:
    raw = build_batch([Record(3, 0, None, b"", ())], base_offset=0, last_offset=9)
    (only,) = Fetched(P, raw, 0).batches()
    assert (len(only.records), only.next_offset) == (1, 10)
    assert Fetched(P, raw, 0).next_offset() == 10


def test_an_empty_batch_advances_the_position() -> None:
    raw = build_batch([], base_offset=0, last_offset=9)
    (only,) = Fetched(P, raw, 0).batches()
    assert (only.records, only.next_offset) == ([], 10)


@pytest.mark.parametrize(("limit", "seen"), [(0, 0), (4, 4), (5, 5), (6, 6), (10, 10), (11, 10)])
def test_records_from_the_limit_on_are_left_out(limit: int, seen: int) -> None:
    raw = batch(0, 5) + batch(5, 5)
    assert read(raw, 0, limit) == list(range(seen))
    assert Fetched(P, raw, 0, limit).next_offset() == seen


def test_transaction_markers_are_skipped() -> None:
    raw = batch(0, 2, producer_id=7) + marker(2, 7, COMMIT)
    batches = list(Fetched(P, raw, 0).batches())
    assert [record.offset for one in batches for record in one.records] == [0, 1]
    assert batches[-1].next_offset == 3


def test_read_uncommitted_includes_aborted_records() -> None:
    assert read(batch(0, 2, producer_id=7) + marker(2, 7, ABORT)) == [0, 1]


def test_read_committed_leaves_out_exactly_the_aborted_records() -> None:
    raw = b"".join(
        [
            batch(0, 1, producer_id=7),
            batch(1, 1, producer_id=8),
            batch(2, 1),
            marker(3, 7, ABORT),
            batch(4, 1, producer_id=7),
            marker(5, 8, COMMIT),
            marker(6, 7, COMMIT),
        ]
    )
    assert read(raw, aborted=[AbortedTransaction(7, 0)]) == [1, 2, 4]
    assert read(raw, aborted=[]) == [0, 1, 2, 4]


def test_a_transaction_that_aborts_later_in_the_log_is_left_out_only_from_its_first_record() -> None:
    raw = batch(0, 1, producer_id=7) + marker(1, 7, COMMIT) + batch(2, 1, producer_id=7) + marker(3, 7, ABORT)
    assert read(raw, aborted=[AbortedTransaction(7, 2)]) == [0]


def test_a_wrong_checksum_is_reported_with_partition_and_offset() -> None:
    raw = bytearray(batch(0, 2) + batch(2, 2))
    raw[-1] ^= 1
    batches = Fetched(P, bytes(raw), 0).batches()
    assert len(next(batches).records) == 2
    with pytest.raises(Damaged, match=r"t-0, offset 2: the checksum"):
        next(batches)


def test_an_old_record_format_is_reported() -> None:
    raw = bytearray(batch(0, 1))
    raw[16] = 1
    with pytest.raises(Damaged, match="record format 1"):
        read(bytes(raw))


def test_records_are_decoded_only_when_they_are_read() -> None:
    raw = bytearray(batch(0, 1) + batch(1, 1))
    raw[-1] ^= 1
    assert Fetched(P, bytes(raw), 0).next_offset() == 2
    assert next(Fetched(P, bytes(raw), 0).batches()).records[0].offset == 0
