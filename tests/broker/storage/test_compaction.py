"""Compaction keeps the last record of each key at its offset, and tombstones for delete.retention.ms."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from broker.protocol.compression import Codec
from broker.protocol.errors import ErrorCode
from broker.protocol.record_batch import Record, batches
from broker.storage import OFFSETS_TOPIC, Appended, PartitionLog, TopicRow
from broker.storage.segments import compaction
from broker.storage.segments.partition import SegmentPartition
from tests.harness.stores import (
    NOW,
    append,
    framed,
    odd_batch,
    open_log,
    raw,
    segment_files,
    stored,
    sweep,
    topic_log,
)

SETTINGS: dict[str, Any] = {"segment_bytes": 400, "compaction_interval_ms": 0}
HOUR = 3_600_000


def newest(partition: PartitionLog) -> dict[bytes | None, bytes | None]:
    return {record.key: record.value for record in stored(partition)}


def live(partition: PartitionLog) -> dict[bytes | None, bytes | None]:
    return {key: value for key, value in newest(partition).items() if value is not None}


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
@pytest.mark.parametrize("clean", [True, False])
def test_compaction_keeps_the_newest_value_of_every_key_at_its_offset(
    tmp_path: Path, codec: Codec, clean: bool
) -> None:
    randomness = random.Random(3)
    log = open_log(tmp_path, **SETTINGS)
    partition = topic_log(log, cleanup_policy="compact", min_cleanable_dirty_ratio="0")
    everything: dict[int, Record] = {}
    for _ in range(6):
        for number in range(30):
            pairs = [
                (b"k%d" % randomness.randrange(12), None if randomness.random() < 0.2 else b"%d" % number)
                for _ in range(randomness.randrange(1, 4))
            ]
            append(partition, *pairs, ts=NOW + randomness.randrange(1000), codec=codec)
        log.flush()
        everything |= {record.offset: record for record in stored(partition)}
        before, size, end = newest(partition), partition.size_bytes, partition.high_watermark
        sweep(log)
        assert newest(partition) == before
        assert partition.size_bytes < size
        assert partition.high_watermark == end
        for record in stored(partition):
            assert record == everything[record.offset]
    log.close(clean=clean)
    log = open_log(tmp_path, **SETTINGS)
    partition = topic_log(log)
    assert newest(partition) == before
    for offset in range(end):
        first = next(stored(partition, offset))
        assert first.offset >= offset
        found = partition.offset_for_timestamp(first.timestamp)
        assert found is not None
        assert found[0] <= first.offset
    log.close()


def test_no_offset_is_missing_between_batches(tmp_path: Path) -> None:
    log = open_log(tmp_path, **SETTINGS)
    partition = topic_log(log, cleanup_policy="compact")
    for number in range(60):
        append(partition, (b"k%d" % (number % 3), b"v"))
    log.flush()
    sweep(log)
    offset = 0
    while content := raw(partition.read(offset, 10_000, at_least_one=True)):
        for _, header in batches(content):
            assert header.base_offset <= offset or offset == 0
            offset = header.next_offset
    assert offset == 60
    log.close()


def test_the_active_segment_is_not_compacted(tmp_path: Path) -> None:
    log = open_log(tmp_path, compaction_interval_ms=0)
    partition = topic_log(log, cleanup_policy="compact")
    for number in range(20):
        append(partition, (b"k", b"%d" % number))
    log.flush()
    sweep(log)
    assert len(list(stored(partition))) == 20
    log.close()


def test_compaction_waits_for_the_dirty_ratio(tmp_path: Path) -> None:
    log = open_log(tmp_path, **SETTINGS)
    partition = topic_log(log, cleanup_policy="compact", min_cleanable_dirty_ratio="0.9")
    for number in range(40):
        append(partition, (b"k%d" % number, b"v" * 30))
    log.flush()
    sweep(log)
    files = segment_files(tmp_path)
    for number in range(5):
        append(partition, (b"k%d" % number, b"v" * 30))
    log.flush()
    sweep(log)
    assert set(files) <= set(segment_files(tmp_path))
    log.alter_topic_configs("t", {"min.cleanable.dirty.ratio": "0.01"})
    sweep(log)
    assert not set(files) <= set(segment_files(tmp_path))
    log.close()


def test_records_younger_than_the_compaction_lag_are_not_compacted(tmp_path: Path) -> None:
    log = open_log(tmp_path, **SETTINGS)
    partition = topic_log(log, cleanup_policy="compact", min_compaction_lag_ms="1000")
    for number in range(20):
        append(partition, (b"k", b"%d" % number))
    log.flush()
    sweep(log, NOW + 999)
    assert len(list(stored(partition))) == 20
    sweep(log, NOW + 1000)
    assert len(list(stored(partition))) < 20
    log.close()


def test_an_idle_log_is_compacted_one_cleaner_backoff_after_the_lag(tmp_path: Path) -> None:
    log = open_log(tmp_path, **SETTINGS | {"compaction_interval_ms": 15_000})
    partition = topic_log(log, cleanup_policy="compact", min_compaction_lag_ms="100000")
    for number in range(20):
        append(partition, (b"k", b"%d" % number))
    log.flush()
    wall_ms = NOW
    while len(list(stored(partition))) == 20:
        wall_ms += log.sweep(wall_ms) or log.next_sweep_ms(wall_ms)
        log.flush()
        assert wall_ms <= NOW + 100_000 + 15_000 + 1000
    assert wall_ms > NOW + 100_000
    log.close()


def test_the_next_sweep_is_when_the_first_interval_ends_or_the_clock_was_set_back(tmp_path: Path) -> None:
    intervals = {"compaction_interval_ms": 5000, "retention_check_interval_ms": 9000}
    log = open_log(tmp_path, **SETTINGS | intervals)
    assert log.next_sweep_ms(NOW) <= 5000
    sweep(log, NOW + 5000)
    assert log.next_sweep_ms(NOW + 5000) == 5000
    assert log.next_sweep_ms(NOW + 9000) == 1000
    sweep(log, NOW + 10_000)
    assert log.next_sweep_ms(NOW + 10_000) == 4000
    assert log.next_sweep_ms(NOW) < 1000
    log.close()


def test_tombstones_stay_for_delete_retention_ms(tmp_path: Path) -> None:
    log = open_log(tmp_path, **SETTINGS)
    partition = topic_log(log, cleanup_policy="compact", delete_retention_ms=str(HOUR), min_cleanable_dirty_ratio="0")

    def fill(wall_ms: int) -> None:
        for number in range(10):
            append(partition, (b"filler", b"%d" % number * 20))
        log.flush()
        sweep(log, wall_ms)

    append(partition, (b"gone", b"value"))
    append(partition, (b"gone", None))
    fill(NOW)
    assert newest(partition)[b"gone"] is None
    fill(NOW + HOUR)
    assert b"gone" in newest(partition)
    fill(NOW + HOUR + 1)
    assert b"gone" not in newest(partition)
    log.close()


def test_segments_without_records_are_removed(tmp_path: Path) -> None:
    log = open_log(tmp_path, **SETTINGS)
    partition = topic_log(log, cleanup_policy="compact")
    for number in range(200):
        append(partition, (b"k", b"%03d" % number))
    log.flush()
    before = len(segment_files(tmp_path))
    sweep(log)
    log.flush()
    assert len(segment_files(tmp_path)) < before / 2
    assert live(partition) == {b"k": b"199"}
    assert partition.log_start_offset == 0
    assert next(stored(partition, 0)).offset > 0
    log.close(clean=False)
    log = open_log(tmp_path, **SETTINGS)
    assert live(topic_log(log)) == {b"k": b"199"}
    log.close()


def spans(partition: PartitionLog, offset: int = 0) -> list[tuple[int, int, int]]:
    """First offset, last offset and number of records of each batch up to the log end."""
    found: list[tuple[int, int, int]] = []
    while offset < partition.high_watermark:
        content = raw(partition.read(offset, 1, at_least_one=True))
        assert content, f"a reader at {offset} gets nothing"
        for _, header in batches(content):
            found.append((header.base_offset, header.last_offset, header.record_count))
            offset = header.next_offset
    return found


def test_readers_reach_the_log_end_after_compaction_removed_the_last_records(tmp_path: Path) -> None:
    """An empty active segment follows them. Kafka's cleaner keeps their last batch, without records (KAFKA-17076)."""
    log = open_log(tmp_path, **SETTINGS)
    partition = topic_log(log)
    assert isinstance(partition, SegmentPartition)
    for at in range(0, 20, 5):
        partition.start_segment(at)
        append(partition, *[b"no key"] * 5)
    partition.start_segment(20)
    log.alter_topic_configs("t", {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"})
    sweep(log)
    assert [spans(partition, offset) for offset in range(20)] == [[(15, 19, 0)]] * 20
    log.close(clean=False)
    log = open_log(tmp_path, **SETTINGS)
    partition = topic_log(log)
    assert spans(partition) == [(15, 19, 0)]
    append(partition, (b"k", b"v"))
    sweep(log)
    assert spans(partition) == [(15, 19, 0), (20, 20, 1)]
    log.close()


def test_sealed_segments_without_keys_vanish_if_records_follow(tmp_path: Path) -> None:
    log = open_log(tmp_path, **SETTINGS)
    partition = topic_log(log)
    assert isinstance(partition, SegmentPartition)
    append(partition, *[b"no key"] * 5)
    partition.start_segment(5)
    append(partition, (b"k", b"v"))
    log.alter_topic_configs("t", {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"})
    sweep(log)
    assert spans(partition) == [(5, 5, 1)]
    log.close()


def test_readers_pass_offsets_that_no_segment_has_before_an_empty_active_one(tmp_path: Path) -> None:
    """Earlier versions compacted like this, and a repair may end so. Kafka's readers stay there until the next append."""
    log = open_log(tmp_path)
    partition = topic_log(log)
    assert isinstance(partition, SegmentPartition)
    append(partition, *[b"v"] * 15)
    partition.start_segment(20)
    log.flush()
    for _ in range(2):
        assert partition.high_watermark == 20
        assert spans(partition) == [(0, 14, 15), (15, 19, 0)]
        assert [spans(partition, offset) for offset in range(15, 20)] == [[(at, 19, 0)] for at in range(15, 20)]
        assert partition.read(15, 60, at_least_one=False) == b""
        assert partition.read(20, 1000, at_least_one=True) == b""
        log.close()
        log = open_log(tmp_path)
        partition = topic_log(log)
    append(partition, b"more")
    assert spans(partition) == [(0, 14, 15), (15, 19, 0)]
    log.flush()
    assert spans(partition) == [(0, 14, 15), (20, 20, 1)]
    log.close()


def test_reads_and_appends_work_between_slices_of_a_pass(tmp_path: Path) -> None:
    log = open_log(tmp_path, **SETTINGS)
    partition = topic_log(log, cleanup_policy="compact", min_cleanable_dirty_ratio="0")
    for number in range(1, 301):
        append(partition, (b"k%d" % (number % 7), b"%d" % number))
        log.flush()
        log.sweep(NOW)
        expected = {b"k%d" % (n % 7): b"%d" % n for n in range(max(1, number - 6), number + 1)}
        if number % 20 == 0:
            assert live(partition) == expected
    log.close()


ODD = {
    "bytes that are no records": framed(b"\xff" * 40, 2),
    "a timestamp beyond 64 bits": odd_batch((0, 0, b"k"), (2**63 - 1, 1, b"z")),
    "an offset beyond 32 bits": odd_batch((0, 0, b"k"), (0, 2**31, b"z")),
    "offsets that do not rise": odd_batch((0, 1, b"k"), (0, 1, b"z")),
    "an offset beyond the batch": odd_batch((0, 0, b"k"), (0, 1000, b"k")),
}


@pytest.mark.parametrize("odd", ODD.values(), ids=list(ODD))
@pytest.mark.parametrize("before", [0, 1, 5])
def test_a_batch_that_cannot_be_decoded_is_kept_unchanged(tmp_path: Path, odd: bytes, before: int) -> None:
    log = open_log(tmp_path, **SETTINGS)
    partition = topic_log(log, min_cleanable_dirty_ratio="0")
    for number in range(before):
        append(partition, (b"k", b"%d" % number))
    assert isinstance(partition.append(odd, wall_ms=NOW), Appended)
    for number in range(30):
        append(partition, (b"k", b"%03d" % number))
    log.alter_topic_configs("t", {"cleanup.policy": "compact"})
    log.flush()
    sweep(log)
    for _ in range(2):
        offset, seen, taken = 0, [], []
        while content := raw(partition.read(offset, 10_000, at_least_one=True)):
            for position, header in batches(content):
                assert header.base_offset >= offset
                offset = header.next_offset
                seen.append(content[position + 61 : position + header.size_bytes])
                taken.append(header.base_offset)
        assert offset == before + 2 + 30
        assert taken[seen.index(odd[61:])] == before
        assert len(seen) < 10
        log.close(clean=False)
        log = open_log(tmp_path, **SETTINGS)
        partition = topic_log(log)
        sweep(log)
    log.close()


@pytest.mark.parametrize("odd", [*ODD.values(), odd_batch((0, 0, b"k"))[:-20]], ids=[*ODD, "a batch cut short"])
def test_a_compacted_topic_refuses_a_batch_that_cannot_be_decoded(tmp_path: Path, odd: bytes) -> None:
    log = open_log(tmp_path)
    partition = topic_log(log, cleanup_policy="compact")
    assert partition.append(odd, wall_ms=NOW) in (ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE)
    log.close()


def test_records_whose_batch_cannot_be_rebuilt_stay_together(tmp_path: Path) -> None:
    log = open_log(tmp_path, **SETTINGS)
    partition = topic_log(log, cleanup_policy="compact")
    wide = odd_batch((0, 0, b"k"), (-(2**63), 1, b"far"), (2**62, 2, b"farther"))
    assert isinstance(partition.append(wide, wall_ms=NOW), Appended)
    for number in range(30):
        append(partition, (b"k", b"%03d" % number))
    log.flush()
    sweep(log)
    assert [(record.offset, record.timestamp - NOW) for record in stored(partition)][:3] == [
        (0, 0),
        (1, -(2**63)),
        (2, 2**62),
    ]
    assert len(list(stored(partition))) < 20
    log.close()


def test_a_pass_stops_when_its_topic_is_deleted(tmp_path: Path) -> None:
    """Tried after every slice."""
    for steps in range(1, 60):
        log = open_log(tmp_path / str(steps), durability="process", segment_bytes=400)
        partition = topic_log(log, cleanup_policy="compact")
        assert isinstance(partition, SegmentPartition)
        for number in [0, 1, 2, 3, *[9] * 8]:
            append(partition, (b"k%d" % number, b"v"))
        log.flush()
        work = compaction.compact(partition, log._shared, NOW)
        ended = [next(work, False) for _ in range(steps)][-1:] == [False]
        log.delete_topic("t")
        log.flush()
        assert list(work) == []
        sweep(log)
        assert segment_files(tmp_path / str(steps)) == []
        log.close()
        if ended:
            return
    raise AssertionError("the pass never ended")


# -- __consumer_offsets


def key(number: int) -> bytes:
    return b"\0\1\0\1g\0\1t" + number.to_bytes(4, "big")


def test_superseded_offset_rows_are_removed_and_the_newest_stay(tmp_path: Path) -> None:
    log = open_log(tmp_path, durability="process", compaction_interval_ms=0)
    for start in range(0, 30_000, 500):
        rows = [TopicRow(3, key(n % 400), b"%d" % n, NOW) for n in range(start, start + 500)]
        log.append_rows(OFFSETS_TOPIC, rows)
        log.flush()
    offsets = log.partition("__consumer_offsets", 3)
    assert offsets is not None
    before, bytes_before = newest(offsets), offsets.size_bytes
    sweep(log)
    assert newest(offsets) == before
    assert offsets.size_bytes < bytes_before / 2
    # Readers that keep up see every one of the most recent rows.
    assert len(list(stored(offsets, 20_000))) == 10_000
    first = raw(offsets.read(0, 1, at_least_one=True))
    end = offsets.high_watermark
    log.close(clean=False)
    log = open_log(tmp_path, durability="process")
    offsets = log.partition("__consumer_offsets", 3)
    assert offsets is not None
    assert (offsets.high_watermark, newest(offsets)) == (end, before)
    assert raw(offsets.read(0, 1, at_least_one=True)) == first
    assert len(log.groups.offset_rows("g")) == 400
    log.close()


def test_expired_tombstones_of_offsets_are_removed(tmp_path: Path) -> None:
    log = open_log(tmp_path, durability="process", compaction_interval_ms=0)
    log.append_rows(OFFSETS_TOPIC, [TopicRow(3, key(1), b"1", NOW), TopicRow(3, key(1), None, NOW)])
    log.append_rows(OFFSETS_TOPIC, [TopicRow(4, key(2), None, NOW)])
    for _ in range(50):
        log.append_rows(OFFSETS_TOPIC, [TopicRow(3, key(9), b"x", NOW)] * 500)
        log.flush()
    sweep(log, NOW + 24 * HOUR)
    assert key(1) in newest(log.partition("__consumer_offsets", 3))  # type: ignore[arg-type]
    for _ in range(50):
        log.append_rows(OFFSETS_TOPIC, [TopicRow(3, key(9), b"x", NOW)] * 500)
        log.flush()
    sweep(log, NOW + 24 * HOUR + 1)
    assert key(1) not in newest(log.partition("__consumer_offsets", 3))  # type: ignore[arg-type]
    # The last row of a partition stays, as it defines the end.
    assert log.partition("__consumer_offsets", 4).high_watermark == 1  # type: ignore[union-attr]
    log.close(clean=False)
    log = open_log(tmp_path, durability="process")
    assert log.partition("__consumer_offsets", 4).high_watermark == 1  # type: ignore[union-attr]
    assert [row.key for row in log.groups.offset_rows("g")] == [key(9)]
    log.close()
