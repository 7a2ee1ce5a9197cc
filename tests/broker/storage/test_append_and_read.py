"""Append, flush, read: one partition as clients see it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import google_crc32c
import pytest

from broker.protocol.compression import Codec
from broker.protocol.errors import ErrorCode
from broker.storage import OFFSETS_TOPIC, DamageError, FileOps, NewerFormatError, StorageError, TopicRow
from broker.storage.log import SWEEP_SOON_MS
from broker.storage.store.database import FORMAT_VERSION
from tests.harness.stores import (
    NOW,
    append,
    batch,
    open_log,
    raw,
    segment_files,
    stored,
    sweep,
    topic_log,
    values,
)


def test_readers_see_a_batch_only_after_the_flush(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    partition = topic_log(log)
    assert append(partition, b"a", b"b") == 0
    assert (partition.high_watermark, partition.log_end_offset) == (0, 2)
    assert partition.read(0, 1000, at_least_one=True) == b""
    assert log.dirty
    log.flush()
    assert not log.dirty
    assert (partition.high_watermark, partition.log_end_offset) == (2, 2)
    assert values(partition) == [(0, b"a"), (1, b"b")]


def test_a_sweep_makes_nothing_durable_or_visible(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    partition = topic_log(log)
    append(partition, b"flushed")
    sweep(log)
    append(partition, b"waiting")
    log.create_topic("waiting", 1, {})
    log.sweep(NOW)
    assert log.dirty
    assert partition.high_watermark == 1
    log.close(clean=False)
    log = open_log(tmp_path)
    assert "waiting" not in log.topics
    log.close()


def test_a_large_wal_waits_for_a_flush_and_then_moves_to_the_database(tmp_path: Path) -> None:
    log = open_log(tmp_path, durability="process")
    rows = [TopicRow(0, b"\0\2\0\1g", bytes(100_000), NOW)] * 10
    for _ in range(10):
        log.append_rows(OFFSETS_TOPIC, rows)
        log.flush()
    size = (tmp_path / "store.db").stat().st_size
    log.create_topic("waiting", 1, {})
    assert log.sweep(NOW) == SWEEP_SOON_MS
    assert (tmp_path / "store.db").stat().st_size == size
    log.flush()
    log.sweep(NOW)
    assert (tmp_path / "store.db").stat().st_size > size + 8_000_000
    log.close()


@pytest.mark.parametrize("clean", [True, False])
def test_flushed_batches_survive_a_restart(tmp_path: Path, clean: bool) -> None:
    log = open_log(tmp_path, segment_bytes=500)
    partition = topic_log(log, "t", 2)
    for number in range(40):
        append(partition, b"%d" % number)
        log.flush()
    before = raw(partition.read(17, 300, at_least_one=True))
    log.close(clean=clean)
    log = open_log(tmp_path, segment_bytes=500)
    partition = topic_log(log, "t", 2)
    assert values(partition) == [(number, b"%d" % number) for number in range(40)]
    assert raw(partition.read(17, 300, at_least_one=True)) == before
    assert append(partition, b"next") == 40
    log.flush()
    log.close()


def test_a_read_starts_with_the_batch_that_contains_the_offset(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    partition = topic_log(log)
    for _ in range(3):
        append(partition, b"x", b"y", b"z")
    log.flush()
    assert next(stored(partition, 4)).offset == 4
    content = raw(partition.read(4, 10_000, at_least_one=True))
    assert int.from_bytes(content[:8], "big") == 3
    log.close()


def test_a_read_returns_whole_batches_within_its_limit(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    partition = topic_log(log)
    size = len(batch(b"x" * 100))
    for _ in range(10):
        append(partition, b"x" * 100)
    log.flush()
    assert len(raw(partition.read(0, 3 * size, at_least_one=False))) == 3 * size
    assert len(raw(partition.read(0, 3 * size - 1, at_least_one=False))) == 2 * size
    assert len(raw(partition.read(0, size, at_least_one=False))) == size
    assert partition.read(0, size - 1, at_least_one=False) == b""
    assert len(raw(partition.read(0, size - 1, at_least_one=True))) == size
    assert len(raw(partition.read(0, 0, at_least_one=True))) == size
    log.close()


def test_an_offset_out_of_range_differs_from_the_end(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    partition = topic_log(log)
    assert partition.read(0, 100, at_least_one=True) == b""
    assert partition.read(1, 100, at_least_one=True) is None
    append(partition, b"a")
    log.flush()
    assert partition.read(1, 100, at_least_one=True) == b""
    assert partition.read(2, 100, at_least_one=True) is None
    assert partition.read(-1, 100, at_least_one=True) is None
    log.close()


def test_batches_larger_than_any_read_chunk_are_served(tmp_path: Path) -> None:
    log = open_log(tmp_path, message_max_bytes=4 << 20)
    partition = topic_log(log)
    sizes = [10, 20_000, 3_000_000, 10, 1_100_000, 70_000]
    for number, size in enumerate(sizes):
        append(partition, bytes([number]) * size)
    log.flush()
    log.close(clean=False)
    log = open_log(tmp_path, message_max_bytes=4 << 20)
    found = [record.value for record in stored(topic_log(log), max_bytes=3_500_000)]
    assert found == [bytes([number]) * size for number, size in enumerate(sizes)]
    log.close()


@pytest.mark.parametrize("codec", list(Codec))
def test_compressed_batches_are_stored_unchanged(tmp_path: Path, codec: Codec) -> None:
    log = open_log(tmp_path)
    partition = topic_log(log)
    sent = batch(b"x" * 500, b"y" * 500, codec=codec)
    partition.append(sent, wall_ms=NOW)
    log.flush()
    kept = raw(partition.read(0, 10_000, at_least_one=True))
    assert kept[16:] == sent[16:]
    log.close()


def _flipped(content: bytes, at: int) -> bytes:
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


def _changed(content: bytes, at: int, to: bytes) -> bytes:
    return content[:at] + to + content[at + len(to) :]


def _with_crc(content: bytes) -> bytes:
    return _changed(content, 17, google_crc32c.value(content[21:]).to_bytes(4, "big"))


GOOD = batch(b"a", b"b")

REFUSED = [
    (b"", ErrorCode.INVALID_RECORD),
    (GOOD[:11], ErrorCode.INVALID_RECORD),
    (GOOD[:60], ErrorCode.INVALID_RECORD),
    (GOOD[:-1], ErrorCode.INVALID_RECORD),
    (GOOD + GOOD, ErrorCode.INVALID_RECORD),
    (GOOD + b"x" * 20, ErrorCode.CORRUPT_MESSAGE),
    (_changed(GOOD, 8, (13).to_bytes(4, "big")), ErrorCode.CORRUPT_MESSAGE),
    (_changed(GOOD, 8, (14).to_bytes(4, "big")), ErrorCode.CORRUPT_MESSAGE),
    (_changed(GOOD, 8, b"\xff\xff\xff\xff"), ErrorCode.CORRUPT_MESSAGE),
    (_changed(GOOD, 16, b"\x03"), ErrorCode.CORRUPT_MESSAGE),
    (_changed(GOOD, 16, b"\x01"), ErrorCode.INVALID_RECORD),
    (_flipped(GOOD, 0), ErrorCode.INVALID_RECORD),
    (_flipped(GOOD, len(GOOD) - 1), ErrorCode.CORRUPT_MESSAGE),
    (_flipped(GOOD, 20), ErrorCode.CORRUPT_MESSAGE),
    (_with_crc(_changed(GOOD, 57, bytes(4))), ErrorCode.INVALID_RECORD),
    (_with_crc(_changed(GOOD, 22, b"\x05")), ErrorCode.INVALID_RECORD),
    (batch(b"a", is_control=True), ErrorCode.INVALID_RECORD),
    (batch(b"a", producer_id=1, producer_epoch=0, base_sequence=-1), ErrorCode.INVALID_RECORD),
    (batch(b"a", ts=NOW + 3_600_001), ErrorCode.INVALID_TIMESTAMP),
    (batch(b"a", b"b", last_offset=4), ErrorCode.INVALID_RECORD),
]


@pytest.mark.parametrize(("content", "error"), REFUSED)
def test_an_invalid_batch_is_refused_without_side_effects(tmp_path: Path, content: bytes, error: ErrorCode) -> None:
    log = open_log(tmp_path)
    partition = topic_log(log)
    log.flush()
    assert partition.append(content, wall_ms=NOW) is error
    assert not log.dirty
    assert not segment_files(tmp_path)
    log.close()


def test_an_incomplete_second_batch_is_ignored(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    partition = topic_log(log)
    for extra in (b"x", GOOD[:16], GOOD[:-1]):
        assert not isinstance(partition.append(GOOD + extra, wall_ms=NOW), ErrorCode)
    log.flush()
    assert [value for _, value in values(partition)] == [b"a", b"b"] * 3
    log.close()


def test_size_and_time_limits_are_inclusive(tmp_path: Path) -> None:
    size = len(batch(b"a" * 100))
    log = open_log(tmp_path)
    log.create_topic("exact", 1, {"max.message.bytes": str(size)})
    log.create_topic("less", 1, {"max.message.bytes": str(size - 1)})
    assert not isinstance(topic_log(log, "exact").append(batch(b"a" * 100), wall_ms=NOW), ErrorCode)
    assert topic_log(log, "less").append(batch(b"a" * 100), wall_ms=NOW) is ErrorCode.MESSAGE_TOO_LARGE
    assert not isinstance(topic_log(log).append(batch(b"a", ts=NOW + 3_600_000), wall_ms=NOW), ErrorCode)
    log.close()


def test_a_batch_larger_than_a_segment_is_refused(tmp_path: Path) -> None:
    size = len(batch(b"a" * 100))
    log = open_log(tmp_path, segment_bytes=size)
    assert append(topic_log(log), b"a" * 100) == 0
    assert topic_log(log).append(batch(b"a" * 101), wall_ms=NOW) is ErrorCode.RECORD_LIST_TOO_LARGE
    log.close()


def test_compacted_topics_refuse_records_without_a_key(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    partition = topic_log(log, cleanup_policy="compact")
    assert partition.append(batch((b"k", b"v"), b"no key"), wall_ms=NOW) is ErrorCode.INVALID_RECORD
    assert append(partition, (b"k", b"v")) == 0
    log.close()


def test_a_changed_config_applies_at_once(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    partition = topic_log(log)
    append(partition, b"a" * 100)
    log.alter_topic_configs("t", {"max.message.bytes": "80"})
    assert partition.append(batch(b"a" * 100), wall_ms=NOW) is ErrorCode.MESSAGE_TOO_LARGE
    log.alter_topic_configs("t", {"max.message.bytes": None})
    append(partition, b"a" * 100)
    log.alter_broker_configs({"message.max.bytes": "80"})
    assert partition.append(batch(b"a" * 100), wall_ms=NOW) is ErrorCode.MESSAGE_TOO_LARGE
    log.close()


def test_files_are_private_and_named_by_topic_id(tmp_path: Path) -> None:
    log = open_log(tmp_path / "deep" / "store")
    topic = log.create_topic("../../evil", 1, {})
    append(topic_log(log, "../../evil"), b"a")
    log.flush()
    log.close(clean=False)
    (file,) = segment_files(tmp_path / "deep" / "store")
    assert file.relative_to(tmp_path / "deep" / "store").parts == (
        "segments",
        topic.topic_id.hex(),
        "0",
        f"{0:020d}.log",
    )
    for found in (tmp_path / "deep" / "store").rglob("*"):
        assert stat.S_IMODE(found.stat().st_mode) == (0o700 if found.is_dir() else 0o600), found


def test_an_empty_topic_has_no_files(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.create_topic("wide", 1000, {})
    log.flush()
    assert [log.partition("wide", index).high_watermark for index in (0, 999)] == [0, 0]  # type: ignore[union-attr]
    assert log.partition("wide", 1000) is None
    assert list((tmp_path / "segments").iterdir()) == []
    log.close()


def test_a_file_slice_stays_readable_after_its_topic_is_deleted(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(topic_log(log), b"a" * 100)
    log.flush()
    partition = topic_log(log)
    found = partition.read(0, 1000, at_least_one=True)
    log.delete_topic("t")
    log.flush()
    sweep(log)
    assert not segment_files(tmp_path)
    assert b"a" * 100 in raw(found)
    assert partition.append(batch(b"a"), wall_ms=NOW) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert partition.read(0, 1000, at_least_one=True) is None
    log.close()


class CountingOps(FileOps):
    def __init__(self) -> None:
        self.removed = 0

    def unlink(self, path: str) -> None:
        self.removed += 1
        super().unlink(path)

    def rmdir(self, path: str) -> None:
        self.removed += 1
        super().rmdir(path)


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("accept_loss", [False, True])
def test_housekeeping_removes_the_files_of_a_deleted_topic_after_the_flush(
    tmp_path: Path, restart: bool, accept_loss: bool
) -> None:
    log = open_log(tmp_path, file_ops=(ops := CountingOps()), durability="process")
    for index in range(40):
        append(topic_log(log, "wide", 39 if index == 0 else index), b"x")
    append(topic_log(log, "other"), b"y")
    log.flush()
    sweep(log)
    ops.removed = 0
    log.delete_topic("wide")
    log.flush()
    assert ops.removed == 0
    assert len(list((tmp_path / "segments").glob("*.deleted"))) == 1
    if restart:
        log.close(clean=False)
        log = open_log(tmp_path, file_ops=(ops := CountingOps()), durability="process", accept_loss=accept_loss)
        assert ops.removed == 0
    sweep(log)
    assert ops.removed > 40
    assert [found.parent.parent.name for found in segment_files(tmp_path)] == [log.topics["other"].topic_id.hex()]
    assert len(list((tmp_path / "segments").iterdir())) == 1
    assert values(topic_log(log, "other")) == [(0, b"y")]
    log.close()


def test_a_recreated_topic_starts_at_offset_0(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(topic_log(log), b"old")
    log.flush()
    log.delete_topic("t")
    assert append(topic_log(log), b"new") == 0
    log.flush()
    log.close(clean=False)
    log = open_log(tmp_path)
    assert values(topic_log(log)) == [(0, b"new")]
    log.close()


def test_many_segments_need_few_descriptors(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=200, max_open_segments=4)
    for index in range(10):
        topic_log(log, f"t{index}")
    for number in range(30):
        for index in range(10):
            append(topic_log(log, f"t{index}"), b"%d" % number * 50)
        log.flush()
    open_now = [os.readlink(f"/proc/self/fd/{fd}") for fd in _descriptors()]
    assert len([path for path in open_now if path.startswith(str(tmp_path)) and path.endswith(".log")]) <= 4
    for index in range(10):
        assert len(values(topic_log(log, f"t{index}"))) == 30
    log.close()


def _descriptors() -> list[str]:
    found = []
    for fd in os.listdir("/proc/self/fd"):
        try:
            os.readlink(f"/proc/self/fd/{fd}")
        except OSError:
            continue
        found.append(fd)
    return found


def test_another_process_format_or_program_is_refused(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    with pytest.raises(StorageError, match="in use"):
        open_log(tmp_path)
    log._store.execute(f"PRAGMA user_version={FORMAT_VERSION + 1}")
    log.close()
    with pytest.raises(NewerFormatError, match=f"format {FORMAT_VERSION + 1}"):
        open_log(tmp_path)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "store.db").write_bytes(b"not a database at all" * 100)
    with pytest.raises(DamageError, match=r"store\.db"):
        open_log(tmp_path / "other")
