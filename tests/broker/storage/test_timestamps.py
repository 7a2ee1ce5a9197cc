"""Look-ups by time are exact for every codec, across segments, from the log start on."""

from __future__ import annotations

from pathlib import Path

import google_crc32c
import pytest

from broker.protocol.compression import Codec
from broker.protocol.errors import ErrorCode
from broker.protocol.record_batch import batches
from broker.protocol.varints import varint
from broker.storage import Appended
from tests.harness.stores import NOW, append, batch, framed, odd_batch, open_log, raw, stored, topic_log


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("clean", [True, False])
def test_the_offset_of_a_time_is_exact_inside_a_batch(tmp_path: Path, codec: Codec, clean: bool) -> None:
    log = open_log(tmp_path, segment_bytes=400)
    partition = topic_log(log)
    for start in range(0, 60, 3):
        append(
            partition,
            b"a",
            b"b",
            b"c",
            ts=[NOW + start * 10, NOW + start * 10 + 10, NOW + start * 10 + 20],
            codec=codec,
        )
    log.flush()
    log.close(clean=clean)
    log = open_log(tmp_path, segment_bytes=400)
    partition = topic_log(log)
    for offset in range(60):
        assert partition.offset_for_timestamp(NOW + offset * 10) == (offset, NOW + offset * 10)
        assert partition.offset_for_timestamp(NOW + offset * 10 - 9) == (offset, NOW + offset * 10)
    assert partition.offset_for_timestamp(NOW + 591) is None
    assert partition.offset_of_max_timestamp() == (59, NOW + 590)
    log.close()


def test_out_of_order_times_give_the_first_offset_at_or_after_the_time(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    partition = topic_log(log)
    for stamp in (50, 20, 90, 10, 90, 30):
        append(partition, b"x", ts=NOW + stamp)
    log.flush()
    assert partition.offset_for_timestamp(NOW) == (0, NOW + 50)
    assert partition.offset_for_timestamp(NOW + 51) == (2, NOW + 90)
    assert partition.offset_of_max_timestamp() == (2, NOW + 90)
    assert partition.delete_records(3) == 3
    assert partition.offset_for_timestamp(NOW) == (3, NOW + 10)
    assert partition.offset_of_max_timestamp() == (4, NOW + 90)
    log.close()


def test_unflushed_records_are_not_found_by_time(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    partition = topic_log(log)
    append(partition, b"x", ts=NOW)
    assert partition.offset_for_timestamp(0) is None
    assert partition.offset_of_max_timestamp() is None
    log.flush()
    append(partition, b"y", ts=NOW + 1)
    assert partition.offset_of_max_timestamp() == (0, NOW)
    log.close()


def test_log_append_time_replaces_the_time_of_every_record(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    partition = topic_log(log, message_timestamp_type="LogAppendTime")
    appended = partition.append(batch(b"x", b"y", ts=[1, 2], codec=Codec.ZSTD), wall_ms=NOW + 7)
    log.flush()
    assert appended == Appended(0, NOW + 7, 0, duplicate=False)
    assert [record.timestamp for record in stored(partition)] == [NOW + 7, NOW + 7]
    ((_, header),) = batches(raw(partition.read(0, 1000, at_least_one=True)))
    assert (header.has_log_append_time, header.max_timestamp) == (True, NOW + 7)
    assert partition.offset_for_timestamp(NOW + 7) == (0, NOW + 7)
    assert partition.offset_for_timestamp(NOW + 8) is None
    log.close()


def test_a_producer_cannot_set_the_log_append_time(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    claiming = batch(b"x", ts=NOW - 5, log_append_time_ms=NOW)
    assert topic_log(log, "lat", message_timestamp_type="LogAppendTime").append(claiming, wall_ms=NOW) == 32
    partition = topic_log(log)
    assert isinstance(partition.append(claiming, wall_ms=NOW), Appended)
    assert partition.append(batch(b"x", ts=-1, log_append_time_ms=-1), wall_ms=NOW) == 32
    log.flush()
    assert [record.timestamp for record in stored(partition)] == [NOW - 5]
    log.close()


def test_records_without_a_timestamp_are_accepted(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    partition = topic_log(log, message_timestamp_before_max_ms="1000")
    append(partition, b"x", ts=-1)
    log.flush()
    assert partition.offset_for_timestamp(0) is None
    assert partition.offset_of_max_timestamp() is None
    log.close()


def test_an_undecodable_batch_does_not_break_look_ups(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    partition = topic_log(log)
    good = batch(b"x" * 200, ts=NOW, codec=Codec.GZIP)
    bad = bytearray(good)
    bad[70:80] = b"0123456789"
    bad[17:21] = google_crc32c.value(bytes(bad[21:])).to_bytes(4, "big")
    assert isinstance(partition.append(bytes(bad), wall_ms=NOW), Appended)
    append(partition, b"y", ts=NOW + 1)
    log.flush()
    assert partition.offset_for_timestamp(NOW) == (0, NOW)
    assert partition.offset_for_timestamp(NOW + 1) == (1, NOW + 1)
    log.close()


@pytest.mark.parametrize("delta", [2**63 - 1 - NOW, 2**63 - NOW, 2**63 - 1])
def test_look_ups_never_return_a_time_beyond_64_bits(tmp_path: Path, delta: int) -> None:
    log = open_log(tmp_path)
    partition = topic_log(log)
    append(partition, b"x", ts=NOW)
    poison = odd_batch((0, 0, b"a"), (delta, 1, b"z"), max_timestamp=NOW + 5)
    assert isinstance(partition.append(poison, wall_ms=NOW), Appended)
    log.flush()
    exact = NOW + delta < 2**63
    assert partition.offset_for_timestamp(NOW + 1) == ((2, NOW + delta) if exact else (1, NOW + 5))
    newest = partition.offset_of_max_timestamp()
    assert newest is not None
    assert newest[1] == NOW + 5
    log.close()


def many(count: int) -> bytes:
    return odd_batch(*((0, offset, b"k") for offset in range(count)), max_timestamp=NOW + 5, codec=Codec.ZSTD)


@pytest.mark.parametrize(("count", "found"), [(100_000, None), (100_001, (1, NOW + 5))])
def test_a_batch_with_too_many_records_is_not_decoded(
    tmp_path: Path, count: int, found: tuple[int, int] | None
) -> None:
    log = open_log(tmp_path)
    partition, compacted = topic_log(log), topic_log(log, "compacted", cleanup_policy="compact")
    append(partition, b"x", ts=NOW - 1)
    content = many(count)
    assert isinstance(partition.append(content, wall_ms=NOW), Appended)
    assert (compacted.append(content, wall_ms=NOW) is ErrorCode.INVALID_RECORD) is (found is not None)
    log.flush()
    assert partition.offset_for_timestamp(NOW + 1) == found
    assert partition.delete_records(50) == 50
    log.flush()
    assert partition.offset_for_timestamp(NOW + 1) == (found and (count, NOW + 5))
    log.close()


@pytest.mark.parametrize("codec", list(Codec)[1:])
@pytest.mark.parametrize("more", [0, 1])
def test_a_batch_that_unpacks_to_too_much_is_not_decoded(tmp_path: Path, codec: Codec, more: int) -> None:
    log = open_log(tmp_path, message_max_bytes=4 << 20)
    partition, compacted = topic_log(log), topic_log(log, "compacted", cleanup_policy="compact")
    head = b"\0\0\0\x02k"
    value = bytes((16 << 20) - len(head) - 9 + more)
    body = head + varint(len(value)) + value + b"\0"
    plain = varint(len(body)) + body
    assert len(plain) == (16 << 20) + more
    content = framed(plain, 1, NOW + 5, codec)
    assert isinstance(partition.append(content, wall_ms=NOW), Appended)
    assert (compacted.append(content, wall_ms=NOW) is ErrorCode.INVALID_RECORD) is bool(more)
    log.flush()
    assert partition.offset_for_timestamp(NOW + 1) == ((0, NOW + 5) if more else None)
    log.close()


def test_the_newest_record_is_found_behind_a_log_start_inside_odd_offsets(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    partition = topic_log(log)
    assert isinstance(partition.append(odd_batch(*[(0, 0, b"k")] * 4), wall_ms=NOW), Appended)
    log.flush()
    assert partition.delete_records(2) == 2
    log.flush()
    assert partition.offset_of_max_timestamp() == (3, NOW)
    log.close()
