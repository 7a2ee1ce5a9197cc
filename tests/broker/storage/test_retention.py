"""Retention by time and by size, and DeleteRecords."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from broker.protocol.errors import ErrorCode
from broker.storage.settings import DAY_MS
from tests.harness.stores import NOW, append, batch, open_log, segment_files, sweep, topic_log, values

SIZE = len(batch(b"x" * 40))
# Two batches per segment; every sweep checks retention.
PAIRS: dict[str, Any] = {"segment_bytes": 2 * SIZE, "retention_check_interval_ms": 0}


def test_segments_are_dropped_when_their_newest_record_is_too_old(tmp_path: Path) -> None:
    log = open_log(tmp_path, **PAIRS)
    partition = topic_log(log, retention_ms="1000")
    for number in range(6):
        append(partition, b"x" * 40, ts=NOW + number * 100)
    log.flush()
    sweep(log, NOW + 1100)
    assert partition.log_start_offset == 0
    sweep(log, NOW + 1101)
    assert partition.log_start_offset == 2
    log.flush()
    assert len(segment_files(tmp_path)) == 2
    log.close(clean=False)
    log = open_log(tmp_path, **PAIRS)
    partition = topic_log(log)
    assert (partition.log_start_offset, partition.high_watermark) == (2, 6)
    assert partition.read(1, 100, at_least_one=True) is None
    assert [offset for offset, _ in values(partition)] == [2, 3, 4, 5]
    log.close()


def test_the_active_segment_is_dropped_too_and_offsets_continue(tmp_path: Path) -> None:
    log = open_log(tmp_path, **PAIRS)
    partition = topic_log(log, retention_ms="1000")
    for _ in range(3):
        append(partition, b"x" * 40)
    log.flush()
    sweep(log, NOW + DAY_MS)
    assert (partition.log_start_offset, partition.high_watermark) == (3, 3)
    assert partition.read(3, 100, at_least_one=True) == b""
    log.close(clean=False)
    log = open_log(tmp_path, **PAIRS)
    partition = topic_log(log)
    assert (partition.log_start_offset, partition.high_watermark) == (3, 3)
    assert append(partition, b"y") == 3
    log.close()


def test_segments_are_dropped_while_the_rest_fills_retention_bytes(tmp_path: Path) -> None:
    log = open_log(tmp_path, **PAIRS)
    partition = topic_log(log, retention_bytes=str(3 * SIZE))
    for _ in range(6):
        append(partition, b"x" * 40)
    log.flush()
    sweep(log)
    assert partition.log_start_offset == 2
    append(partition, b"x" * 40)
    log.flush()
    sweep(log)
    assert partition.log_start_offset == 4
    assert partition.size_bytes == 3 * SIZE
    log.close()


def test_unlimited_and_compacted_topics_drop_nothing(tmp_path: Path) -> None:
    log = open_log(tmp_path, **PAIRS)
    forever = topic_log(log, "forever", retention_ms="-1")
    compacted = topic_log(log, "compacted", cleanup_policy="compact")
    for number in range(6):
        append(forever, b"x" * 40)
        append(compacted, (b"%d" % number, b"x" * 30))
    log.flush()
    sweep(log, NOW + 1000 * DAY_MS)
    assert (forever.log_start_offset, compacted.log_start_offset) == (0, 0)
    log.close()


def test_retention_covers_partitions_that_are_not_loaded(tmp_path: Path) -> None:
    log = open_log(tmp_path, **PAIRS)
    for _ in range(4):
        append(topic_log(log), b"x" * 40)
    log.close()
    log = open_log(tmp_path, **PAIRS)
    sweep(log, NOW + 30 * DAY_MS)
    assert topic_log(log).log_start_offset == 4
    log.close()


def test_delete_records_moves_the_start_and_drops_whole_segments(tmp_path: Path) -> None:
    log = open_log(tmp_path, **PAIRS)
    partition = topic_log(log)
    for _ in range(5):
        append(partition, b"x" * 40)
    log.flush()
    append(partition, b"not committed")
    assert partition.delete_records(6) is ErrorCode.OFFSET_OUT_OF_RANGE
    assert partition.delete_records(-2) is ErrorCode.OFFSET_OUT_OF_RANGE
    assert partition.delete_records(3) == 3
    assert partition.delete_records(2) == 3
    log.flush()
    assert len(segment_files(tmp_path)) == 2
    log.close(clean=False)
    log = open_log(tmp_path, **PAIRS)
    partition = topic_log(log)
    assert [offset for offset, _ in values(partition)] == [3, 4, 5]
    assert partition.read(2, 100, at_least_one=True) is None
    assert partition.delete_records(-1) == 6
    assert values(partition) == []
    log.close()


def test_records_of_compacted_topics_are_not_deleted(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    both = topic_log(log, "both", cleanup_policy="compact,delete")
    compacted = topic_log(log, "compacted", cleanup_policy="compact")
    for partition in (both, compacted):
        append(partition, (b"k", b"v"))
    log.flush()
    assert compacted.delete_records(-1) is ErrorCode.POLICY_VIOLATION
    assert both.delete_records(-1) == 1
    log.close()


def test_nothing_can_be_deleted_from_an_empty_partition(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    partition = topic_log(log)
    assert partition.delete_records(-1) == 0
    assert partition.delete_records(0) == 0
    assert partition.delete_records(1) is ErrorCode.OFFSET_OUT_OF_RANGE
    log.close()


def test_a_segment_spans_no_more_time_than_segment_ms(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    partition = topic_log(log, segment_ms="1000")
    for stamp in (0, 1000, 1001, 2001, 2002):
        append(partition, b"x", ts=NOW + stamp)
    log.flush()
    assert [int(path.stem) for path in segment_files(tmp_path)] == [0, 2, 4]
    log.close()
