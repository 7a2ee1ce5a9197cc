"""Record batches: headers, checksums, records and codecs, compared with the encoders of two clients."""

from __future__ import annotations

import gzip
import struct
import subprocess
import sys
from contextlib import suppress
from typing import Any

import cramjam
import pytest
from aiokafka.record.default_records import DefaultRecordBatch as AioBatch
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AioBuilder
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from broker.protocol.codec import DecodeError, EncodeError
from broker.protocol.compression import Codec, compress, decompress
from broker.protocol.record_batch import (
    BatchHeader,
    Record,
    batches,
    build_batch,
    check_crc,
    decode_records,
    parse_header,
    patch,
    scan_records,
    set_log_append_time,
)

NOW = 1_700_000_000_000
RECORDS = [
    Record(0, NOW, b"key", b"value"),
    Record(1, NOW + 5, None, b"v" * 5000),
    Record(2, NOW - 3, b"tombstone", None),
    Record(3, NOW, b"", b"", (("name", b"value"), ("é", None), ("name", b""))),
]

records_strategy = st.lists(
    st.tuples(
        st.integers(0, 50),
        st.integers(-1, 2**43),
        st.none() | st.binary(max_size=100),
        st.none() | st.binary(max_size=300),
        st.lists(st.tuples(st.text(max_size=20), st.none() | st.binary(max_size=20)), max_size=3),
    ),
    min_size=1,
    max_size=20,
)


def laid_out(drawn: list[tuple[int, int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]]) -> list[Record]:
    """Records with increasing offsets from 1000 and the drawn gaps."""
    offset, found = 1000, []
    for gap, timestamp, key, value, headers in drawn:
        found.append(Record(offset, timestamp, key, value, tuple(headers)))
        offset += 1 + gap
    return found


@settings(max_examples=50, deadline=None)
@given(records_strategy, st.sampled_from(Codec))
def test_records_survive_a_round_trip_with_offsets_and_gaps(drawn: list, codec: Codec) -> None:  # type: ignore[type-arg]
    records = laid_out(drawn)
    batch = build_batch(records, codec=codec)
    header = parse_header(batch)
    assert decode_records(batch) == records
    assert decode_records(b"before" + batch + b"after", 6) == records
    assert (header.base_offset, header.last_offset, header.record_count) == (1000, records[-1].offset, len(records))
    assert header.max_timestamp == max(record.timestamp for record in records)
    assert header.size_bytes == len(batch)
    assert check_crc(batch, 0, header)


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("theirs", [DefaultRecordBatch, AioBatch])
def test_other_clients_read_our_batches(codec: Codec, theirs: type) -> None:
    read = theirs(build_batch(RECORDS, codec=codec, producer_id=9, producer_epoch=1, base_sequence=4))
    assert read.validate_crc()
    assert (read.producer_id, read.producer_epoch, read.base_sequence) == (9, 1, 4)
    assert [
        Record(record.offset, record.timestamp, record.key, record.value, tuple(record.headers)) for record in read
    ] == RECORDS


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("builder", [DefaultRecordBatchBuilder, AioBuilder])
def test_batches_of_other_clients_are_read(codec: Codec, builder: type) -> None:
    batch = built_by(builder, codec)
    ((position, header),) = batches(batch)
    assert check_crc(batch, position, header)
    assert header.codec == codec
    assert decode_records(batch) == RECORDS


@pytest.mark.parametrize("builder", [DefaultRecordBatchBuilder, AioBuilder])
def test_an_uncompressed_batch_equals_that_of_other_clients(builder: type) -> None:
    theirs = built_by(builder, Codec.NONE)
    epoch = parse_header(theirs).partition_leader_epoch
    assert build_batch(RECORDS, leader_epoch=epoch, producer_id=9, producer_epoch=1, base_sequence=4) == theirs


def built_by(builder: type, codec: Codec) -> bytes:
    made = builder(
        magic=2,
        compression_type=int(codec),
        is_transactional=0,
        producer_id=9,
        producer_epoch=1,
        base_sequence=4,
        batch_size=1 << 20,
    )
    for record in RECORDS:
        made.append(record.offset, record.timestamp, record.key, record.value, list(record.headers))
    return bytes(made.build())


def test_the_header_is_read_field_by_field() -> None:
    batch = build_batch(
        RECORDS[:1], codec=Codec.ZSTD, base_offset=-0, leader_epoch=7, is_transactional=True, is_control=True
    )
    header = parse_header(batch)
    assert header == BatchHeader(0, len(batch) - 12, 7, 2, header.crc, 0x34, 0, NOW, NOW, -1, -1, -1, 1)
    assert (header.codec, header.is_transactional, header.is_control, header.has_log_append_time) == (
        4,
        True,
        True,
        False,
    )
    plain = parse_header(build_batch(RECORDS))
    assert (plain.is_transactional, plain.is_control, plain.last_offset, plain.next_offset) == (False, False, 3, 4)


def test_a_batch_may_span_more_offsets_than_it_has_records() -> None:
    header = parse_header(build_batch(RECORDS[1:3], base_offset=-2, last_offset=9))
    assert (header.base_offset, header.last_offset, header.record_count) == (-2, 9, 2)
    empty = build_batch([], base_offset=5, last_offset=8)
    assert decode_records(empty) == []
    assert parse_header(empty).next_offset == 9


def test_patching_moves_a_batch_and_keeps_its_checksum_valid() -> None:
    buffer = bytearray(build_batch(RECORDS) + build_batch(RECORDS))
    (_, first), (position, _) = batches(buffer)
    patch(buffer, position, base_offset=2**40, leader_epoch=3)
    assert parse_header(buffer) == first
    second = parse_header(buffer, position)
    assert (second.base_offset, second.partition_leader_epoch, second.crc) == (2**40, 3, first.crc)
    assert check_crc(buffer, position, second)
    assert [record.offset for record in decode_records(buffer, position)] == [2**40 + index for index in range(4)]


def test_the_append_time_replaces_the_time_of_every_record() -> None:
    buffer = bytearray(b"....." + build_batch(RECORDS, codec=Codec.GZIP))
    set_log_append_time(buffer, 5, NOW + 99)
    header = parse_header(buffer, 5)
    assert header.has_log_append_time
    assert check_crc(buffer, 5, header)
    assert {record.timestamp for record in decode_records(buffer, 5)} == {NOW + 99}
    assert bytes(buffer[5:]) == build_batch(RECORDS, codec=Codec.GZIP, log_append_time_ms=NOW + 99)


def test_a_flipped_bit_changes_the_checksum() -> None:
    batch = build_batch(RECORDS)
    for position in range(17, len(batch), 97):
        damaged = bytearray(batch)
        damaged[position] ^= 4
        assert not check_crc(damaged, 0, parse_header(damaged))


def test_a_partial_last_batch_is_an_error_unless_expected() -> None:
    one = build_batch(RECORDS)
    assert [position for position, _ in batches(one * 3)] == [0, len(one), 2 * len(one)]
    assert list(batches(b"")) == []
    for length in (1, 12, 60, 61, len(one) - 1):
        with pytest.raises(DecodeError):
            list(batches(one + one[:length]))
        assert [position for position, _ in batches(one + one[:length], partial_tail=True)] == [0]


@pytest.mark.parametrize("length", [-1, 0, 48, -(2**31)])
def test_a_batch_shorter_than_its_header_is_refused(length: int) -> None:
    batch = bytearray(build_batch(RECORDS))
    struct.pack_into(">i", batch, 8, length)
    for partial_tail in (False, True):
        with pytest.raises(DecodeError):
            list(batches(batch, partial_tail=partial_tail))
    with pytest.raises(DecodeError):
        decode_records(batch)


@pytest.mark.parametrize("count", [-1, 5, 2**31 - 1])
def test_a_wrong_record_count_is_refused(count: int) -> None:
    batch = bytearray(build_batch(RECORDS))
    struct.pack_into(">i", batch, 57, count)
    with pytest.raises(DecodeError):
        decode_records(batch)


def test_a_record_format_before_v2_is_refused() -> None:
    batch = bytearray(build_batch(RECORDS))
    batch[16] = 1
    with pytest.raises(DecodeError):
        decode_records(batch)


@settings(max_examples=200, deadline=None)
@given(st.integers(61, 61 + 40), st.integers(0, 255), st.binary(max_size=60))
def test_damaged_records_are_decoded_or_refused(position: int, byte: int, tail: bytes) -> None:
    for batch in (bytearray(build_batch(RECORDS)), bytearray(build_batch(RECORDS)[:61] + tail)):
        struct.pack_into(">i", batch, 8, len(batch) - 12)
        if position < len(batch):
            batch[position] = byte
        try:
            records = decode_records(batch)
        except DecodeError:
            with pytest.raises(DecodeError):
                list(scan_records(batch))
            continue
        with suppress(DecodeError):
            assert list(scan_records(batch)) == [(r.offset, r.timestamp, r.key is not None) for r in records]


@settings(max_examples=100, deadline=None)
@given(records_strategy, st.sampled_from(Codec))
def test_a_scan_agrees_with_decoding(drawn: list[Any], codec: Codec) -> None:
    records = laid_out(drawn)
    batch = build_batch(records, codec=codec)
    assert list(scan_records(batch)) == [(r.offset, r.timestamp, r.key is not None) for r in records]
    assert len(list(scan_records(batch, max_records=len(records)))) == len(records)
    for read in (decode_records, scan_records):
        with pytest.raises(DecodeError):
            list(read(batch, max_records=len(records) - 1))


@pytest.mark.parametrize("timestamp", [-(2**63), 2**63 - 1])
def test_extreme_timestamps_survive_a_round_trip(timestamp: int) -> None:
    records = [
        Record(0, -1 if timestamp > 0 else 0, b"k", None),
        Record(2**31 - 1, min(timestamp, 2**63 - 2), b"k", b"v"),
    ]
    batch = build_batch(records)
    assert decode_records(batch) == records
    assert [found[:2] for found in scan_records(batch)] == [record[:2] for record in records]
    moved = bytearray(batch)
    struct.pack_into(">q", moved, 27, 10 if timestamp > 0 else -10)
    for read in (decode_records, scan_records):
        with pytest.raises(DecodeError):
            list(read(moved))


@pytest.mark.parametrize(
    "last", [Record(2**31, 0, None, None), Record(1, 2**63, None, None), Record(1, 2**63 - 1, None, None)]
)
def test_records_too_far_apart_are_refused(last: Record) -> None:
    with pytest.raises(EncodeError):
        build_batch([Record(0, -1, None, None), last])


@pytest.mark.parametrize("codec", list(Codec)[1:])
def test_decompression_beyond_the_limit_is_refused(codec: Codec) -> None:
    plain = bytes(3_000_000)
    packed = compress(codec, plain)
    assert decompress(codec, packed, len(plain)) == plain
    with pytest.raises(DecodeError):
        decompress(codec, packed, len(plain) - 1)
    batch = build_batch([Record(0, NOW, None, plain)], codec=codec)
    with pytest.raises(DecodeError):
        decode_records(batch, max_decompressed_bytes=2_000_000)
    assert decode_records(batch, max_decompressed_bytes=3_100_000)[0].value == plain


@pytest.mark.parametrize("codec", list(Codec)[1:])
def test_damaged_compressed_bytes_are_refused(codec: Codec) -> None:
    packed = compress(codec, b"some plain text " * 5000)
    for damaged in (b"", packed[:-5], packed[: len(packed) // 2], b"\0" * 30, b"\xff" * 30):
        with pytest.raises(DecodeError):
            decompress(codec, damaged, 1_000_000)


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_an_unknown_codec_is_refused(codec: int) -> None:
    with pytest.raises(DecodeError):
        decompress(codec, b"x", 100)


@pytest.mark.parametrize("size", [0, 1, 32 * 1024, 64 * 1024, 64 * 1024 + 1, 300_000])
@pytest.mark.parametrize("codec", Codec)
def test_every_size_survives_a_round_trip(codec: Codec, size: int) -> None:
    plain = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    packed = compress(codec, plain)
    if size or codec is not Codec.SNAPPY:
        assert decompress(codec, packed, max(size, 1)) == plain
    if codec is Codec.GZIP:
        assert gzip.decompress(packed) == plain
    if codec is Codec.LZ4:
        assert bytes(cramjam.lz4.decompress(packed)) == plain


def test_lz4_blocks_are_independent() -> None:
    """Kafka refuses frames with linked blocks."""
    assert compress(Codec.LZ4, b"x" * 200_000)[4] & 0x20


def test_snappy_is_read_with_and_without_xerial_framing() -> None:
    plain = b"some plain text " * 5000
    assert decompress(Codec.SNAPPY, bytes(cramjam.snappy.compress_raw(plain)), 100_000) == plain
    assert compress(Codec.SNAPPY, plain).startswith(b"\x82SNAPPY\0\0\0\0\1\0\0\0\1")


def test_the_codecs_are_imported_on_demand() -> None:
    program = (
        "import sys; from broker.protocol.record_batch import *; "
        "decode_records(build_batch([Record(0, 0, None, None)])); print('cramjam' in sys.modules)"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "False"
