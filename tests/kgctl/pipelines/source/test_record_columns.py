"""Columns hold the same records as decoding one by one."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.protocol.compression import Codec
from broker.protocol.record_batch import Record, build_batch
from broker.protocol.varints import varint
from kgctl.client.consumer.fetched import AbortedTransaction, Damaged, Fetched
from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.source import record_columns, record_ends
from kgctl.pipelines.source.record_columns import RAW_SCHEMA_WITH_HEADERS, record_batches, schema_of

P = TopicPartition("täglich", 3)
ABORT, COMMIT = struct.pack(">hh", 0, 0), struct.pack(">hh", 0, 1)


ALL = tuple(RAW_SCHEMA_WITH_HEADERS.names)


def rows(fetched: Fetched, columns: Sequence[str] = ALL) -> list[dict[str, Any]]:
    found = []
    for made in record_batches(fetched, columns):
        made.validate(full=True)
        assert made.schema == schema_of(columns)
        if "timestamp" in columns:
            at = made.schema.get_field_index("timestamp")
            made = made.set_column(at, "timestamp", made.column(at).view("int64"))
        found += made.to_pylist()
    return found


def expected(fetched: Fetched) -> list[dict[str, Any]]:
    return [
        {
            "key": record.key,
            "value": record.value,
            "topic": P.topic,
            "partition": P.partition,
            "offset": record.offset,
            "timestamp": record.timestamp * 1000,
            "timestampType": int(one.has_log_append_time),
            "headers": [{"key": name, "value": value} for name, value in record.headers] or None,
        }
        for one in fetched.batches()
        for record in one.records
    ]


lengths = st.sampled_from((0, 1, 62, 63, 64, 200, 8191, 8192, 9000))
blobs = st.none() | st.binary(max_size=20) | lengths.map(lambda length: (bytes(range(256)) * 40)[:length])
headers = st.lists(st.tuples(st.text(max_size=5), blobs), max_size=3).map(tuple)


@st.composite
def logs(draw: st.DrawFn) -> bytes:
    """Batches with gaps between and inside them, as after compaction."""
    offset, raw = draw(st.integers(0, 2**40)), b""
    for _ in range(draw(st.integers(1, 4))):
        base = offset = offset + draw(st.integers(0, 3))
        records = []
        for _ in range(draw(st.integers(0, 5))):
            offset += draw(st.sampled_from((0, 0, 1, 100, 20_000)))
            time = 1_700_000_000_000 + draw(st.sampled_from((0, -1, 63, 64, 9000, 3_000_000, 2**36)))
            records.append(Record(offset, time, draw(blobs), draw(blobs), draw(headers)))
            offset += 1
        offset += draw(st.integers(0, 2))
        raw += build_batch(
            records,
            codec=draw(st.sampled_from(list(Codec))),
            base_offset=base,
            last_offset=max(offset - 1, base),
            log_append_time_ms=draw(st.none() | st.integers(0, 2**41)),
        )
        offset = max(offset, base + 1)
    return raw


@given(raw=logs(), data=st.data(), side_by_side=st.sampled_from((1, 2, 16)))
@settings(deadline=None)
def test_columns_equal_the_records_one_by_one_in_any_range(raw: bytes, data: st.DataObject, side_by_side: int) -> None:
    whole = Fetched(P, raw, 0)
    offsets = [row["offset"] for row in expected(whole)] or [0]
    first = data.draw(st.integers(max(0, offsets[0] - 2), offsets[-1] + 2))
    limit = data.draw(st.none() | st.integers(first, offsets[-1] + 2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(record_ends, "_MIN_SIDE_BY_SIDE", side_by_side)
        for one in (whole, Fetched(P, memoryview(raw), first, limit)):
            assert rows(one) == expected(one)
            some = data.draw(st.lists(st.sampled_from(ALL), min_size=1, unique=True))
            assert rows(one, some) == [{name: row[name] for name in some} for row in expected(one)]


def test_a_large_response_becomes_several_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = b"".join(build_batch([Record(n, n, None, bytes(1000))]) for n in range(10))
    monkeypatch.setattr(record_columns, "CHUNK_BYTES", 3000)
    made = list(record_batches(Fetched(P, raw, 0)))
    assert [one.num_rows for one in made] == [3, 3, 3, 1]
    assert [n for one in made for n in one.column("offset").to_pylist()] == list(range(10))


def test_a_small_batch_that_holds_seventy_mebibytes_is_read() -> None:
    raw = build_batch([Record(0, 0, b"k", bytes(70 << 20))], codec=Codec.ZSTD)
    ((key, value),) = [(row["key"], row["value"]) for row in rows(Fetched(P, raw, 0))]
    assert (key, len(value)) == (b"k", 70 << 20)


def of_transaction(first: int, count: int, producer_id: int) -> bytes:
    records = [Record(first + n, 0, None, b"x") for n in range(count)]
    return build_batch(records, producer_id=producer_id, producer_epoch=0, base_sequence=0, is_transactional=True)


def marker(offset: int, producer_id: int, kind: bytes) -> bytes:
    record = Record(offset, 0, kind, struct.pack(">hi", 0, 0))
    return build_batch([record], producer_id=producer_id, producer_epoch=0, is_transactional=True, is_control=True)


def test_aborted_transactions_are_left_out_but_not_later_commits_of_the_same_producer() -> None:
    raw = (
        of_transaction(0, 2, 7)
        + of_transaction(2, 2, 8)
        + marker(4, 7, ABORT)
        + of_transaction(5, 2, 7)
        + marker(7, 8, COMMIT)
        + marker(8, 7, COMMIT)
    )
    aborted = [AbortedTransaction(7, 0)]
    assert [row["offset"] for row in rows(Fetched(P, raw, 0, None, aborted))] == [2, 3, 5, 6]
    assert [row["offset"] for row in rows(Fetched(P, raw, 1, 6, aborted))] == [2, 3, 5]
    assert [row["offset"] for row in rows(Fetched(P, raw, 0))] == [0, 1, 2, 3, 5, 6]


def test_a_time_outside_sparks_range_becomes_its_last_time() -> None:
    raw = build_batch([Record(0, 2**62, None, b"")]) + build_batch([Record(1, -1, None, b"")])
    assert [row["timestamp"] for row in rows(Fetched(P, raw, 0))] == [(2**63 - 1) // 1000 * 1000, -1000]


def test_a_header_name_that_is_not_utf8_is_read_as_far_as_it_can_be() -> None:
    raw = bytearray(build_batch([Record(0, 0, None, b"v", (("abc", b"1"),))]))
    at = raw.index(b"abc")
    raw[at] = 0xFF
    assert rows(Fetched(P, signed(raw), 0))[0]["headers"] == [{"key": "\ufffdbc", "value": b"1"}]


def test_a_wrong_checksum_is_reported_with_partition_and_offset() -> None:
    raw = bytearray(build_batch([Record(0, 0, None, b"value")]) + build_batch([Record(1, 0, None, b"value")]))
    raw[-2] ^= 1
    with pytest.raises(Damaged, match="täglich-3, offset 1: the checksum of the batch is wrong"):
        rows(Fetched(P, bytes(raw), 0))


def test_old_formats_are_refused() -> None:
    raw = bytearray(build_batch([Record(0, 0, None, b"value")]))
    raw[16] = 1
    with pytest.raises(Damaged, match="record format 1"):
        rows(Fetched(P, bytes(raw), 0))


def signed(raw: bytearray) -> bytes:
    import google_crc32c

    struct.pack_into(">I", raw, 17, google_crc32c.value(bytes(raw[21:])))
    return bytes(raw)


@pytest.mark.parametrize("side_by_side", [1, 16])
@given(data=st.data())
@settings(deadline=None)
def test_malformed_records_are_damaged(side_by_side: int, data: st.DataObject) -> None:
    raw = bytearray(build_batch([Record(100 + n, n, b"key", b"value" * n, (("h", b"x"),) * (n % 2)) for n in range(4)]))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(61, len(raw) - 1))
        raw[at] = data.draw(st.integers(0, 255))
    fetched = Fetched(P, signed(raw), 0)
    try:
        wanted = expected(fetched)
    except Damaged:
        wanted = None
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(record_ends, "_MIN_SIDE_BY_SIDE", side_by_side)
            found = rows(fetched)
    except Damaged:
        assert wanted is None or any(row["timestamp"] != 0 for row in wanted)
    else:
        # A header name that is not UTF-8 and a time outside Spark's range are accepted on purpose.
        assert wanted is None or [row["offset"] for row in found] == [row["offset"] for row in wanted]


@pytest.mark.parametrize("length", [-2, 2**31, 2**40, 2**62])
def test_impossible_lengths_are_damaged(length: int) -> None:
    body = b"\0" + varint(0) + varint(0) + varint(length) + b"abc" + varint(0) + varint(0)
    record = varint(len(body)) + body
    raw = bytearray(build_batch([Record(0, 0, None, b"")]))
    raw[61:] = record
    struct.pack_into(">i", raw, 8, len(raw) - 12)
    with pytest.raises(Damaged):
        rows(Fetched(P, signed(raw), 0))


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
@pytest.mark.parametrize("columns", [ALL, ("offset",)])
def test_more_records_than_bytes_are_damaged(columns: Sequence[str], codec: Codec) -> None:
    raw = bytearray(build_batch([Record(0, 0, None, b"value")], codec=codec))
    struct.pack_into(">i", raw, 23, 2**31 - 2)
    struct.pack_into(">i", raw, 57, 2**31 - 1)
    with pytest.raises(Damaged, match="more records than bytes"):
        rows(Fetched(P, signed(raw), 0), columns)
