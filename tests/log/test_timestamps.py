"""Look-ups by time are exact, in every codec, across segments, from the log start on."""

from __future__ import annotations

from pathlib import Path

import google_crc32c
import pytest

from broker.log import Appended
from broker.protocol.compression import Codec
from broker.protocol.record_batch import batches
from tests.log.stores import NOW, append, batch, open_log, raw, stored, topic_log


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
    log.commit()
    log.close(clean=clean)
    log = open_log(tmp_path, segment_bytes=400)
    partition = topic_log(log)
    for offset in range(60):
        assert partition.offset_for_timestamp(NOW + offset * 10) == (offset, NOW + offset * 10)
        assert partition.offset_for_timestamp(NOW + offset * 10 - 9) == (offset, NOW + offset * 10)
    assert partition.offset_for_timestamp(NOW + 591) is None
    assert partition.offset_of_max_timestamp() == (59, NOW + 590)
    log.close()


def test_times_out_of_order_give_the_first_offset_not_older(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    partition = topic_log(log)
    for stamp in (50, 20, 90, 10, 90, 30):
        append(partition, b"x", ts=NOW + stamp)
    log.commit()
    assert partition.offset_for_timestamp(NOW) == (0, NOW + 50)
    assert partition.offset_for_timestamp(NOW + 51) == (2, NOW + 90)
    assert partition.offset_of_max_timestamp() == (2, NOW + 90)
    assert partition.delete_records(3) == 3
    assert partition.offset_for_timestamp(NOW) == (3, NOW + 10)
    assert partition.offset_of_max_timestamp() == (4, NOW + 90)
    log.close()


def test_what_is_not_committed_has_no_time_yet(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    partition = topic_log(log)
    append(partition, b"x", ts=NOW)
    assert partition.offset_for_timestamp(0) is None
    assert partition.offset_of_max_timestamp() is None
    log.commit()
    append(partition, b"y", ts=NOW + 1)
    assert partition.offset_of_max_timestamp() == (0, NOW)
    log.close()


def test_log_append_time_replaces_the_time_of_every_record(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    partition = topic_log(log, message_timestamp_type="LogAppendTime")
    appended = partition.append(batch(b"x", b"y", ts=[1, 2], codec=Codec.ZSTD), wall_ms=NOW + 7)
    log.commit()
    assert appended == Appended(0, NOW + 7, 0, duplicate=False)
    assert [record.timestamp for record in stored(partition)] == [NOW + 7, NOW + 7]
    ((_, header),) = batches(raw(partition.read(0, 1000, at_least_one=True)))
    assert (header.has_log_append_time, header.max_timestamp) == (True, NOW + 7)
    assert partition.offset_for_timestamp(NOW + 7) == (0, NOW + 7)
    assert partition.offset_for_timestamp(NOW + 8) is None
    log.close()


def test_only_the_log_gives_its_own_time(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    claiming = batch(b"x", ts=NOW - 5, log_append_time_ms=NOW)
    assert topic_log(log, "lat", message_timestamp_type="LogAppendTime").append(claiming, wall_ms=NOW) == 32
    partition = topic_log(log)
    assert isinstance(partition.append(claiming, wall_ms=NOW), Appended)
    assert partition.append(batch(b"x", ts=-1, log_append_time_ms=-1), wall_ms=NOW) == 32
    log.commit()
    assert [record.timestamp for record in stored(partition)] == [NOW - 5]
    log.close()


def test_records_without_a_time_are_taken(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    partition = topic_log(log, message_timestamp_before_max_ms="1000")
    append(partition, b"x", ts=-1)
    log.commit()
    assert partition.offset_for_timestamp(0) is None
    assert partition.offset_of_max_timestamp() is None
    log.close()


def test_records_that_nobody_can_decode_do_not_stop_a_look_up(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    partition = topic_log(log)
    good = batch(b"x" * 200, ts=NOW, codec=Codec.GZIP)
    bad = bytearray(good)
    bad[70:80] = b"0123456789"
    bad[17:21] = google_crc32c.value(bytes(bad[21:])).to_bytes(4, "big")
    assert isinstance(partition.append(bytes(bad), wall_ms=NOW), Appended)
    append(partition, b"y", ts=NOW + 1)
    log.commit()
    assert partition.offset_for_timestamp(NOW) == (0, NOW)
    assert partition.offset_for_timestamp(NOW + 1) == (1, NOW + 1)
    log.close()
