"""Without a descriptor, the log refuses or postpones what has not begun; what was appended becomes durable all the same."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from broker.storage import OFFSETS_TOPIC, DamageError, FileOps, Log, OutOfDescriptors, StorageError, TopicRow
from tests.harness.descriptors import exhausted
from tests.harness.stores import NOW, append, open_log, raw, segment_files, sweep, topic_log, values


def open_segments(path: Path) -> int:
    count = 0
    for descriptor in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{descriptor}")
        except OSError:
            continue
        count += target.startswith(str(path)) and ".log" in target
    return count


def fill(log: Log, count: int) -> None:
    for index in range(count):
        append(topic_log(log, f"t{index}"), b"%d" % index * 100)
    log.flush()


def test_answers_that_wait_for_their_clients_hold_no_descriptors(tmp_path: Path) -> None:
    log = open_log(tmp_path, max_open_segments=4)
    fill(log, 40)
    found = [topic_log(log, f"t{index}").read(0, 1000, at_least_one=True) for index in range(40)]
    assert open_segments(tmp_path) <= 4
    for index, content in enumerate(found):
        assert b"%d" % index * 100 in raw(content)
    log.close()


def test_an_answer_stays_complete_after_the_compaction_of_its_segment(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=200, min_cleanable_dirty_ratio=0.0)
    partition = topic_log(log, cleanup_policy="compact")
    for number in range(6):
        append(partition, (b"key", b"%d" % number * 50))
        log.flush()
    found = [partition.read(offset, 150, at_least_one=True) for offset in range(5)]
    before = segment_files(tmp_path)
    sweep(log, NOW + 60_000)
    assert len(segment_files(tmp_path)) < len(before)
    for number, content in enumerate(found):
        assert b"%d" % number * 50 in raw(content)
    log.close()


def test_the_files_that_deletions_leave_open_for_answers_are_bounded(tmp_path: Path) -> None:
    log = open_log(tmp_path, max_open_segments=4)
    fill(log, 40)
    found = [topic_log(log, f"t{index}").read(0, 1000, at_least_one=True) for index in range(40)]
    for index in range(40):
        log.delete_topic(f"t{index}")
    sweep(log)
    assert segment_files(tmp_path) == []
    assert 0 < open_segments(tmp_path) <= 6
    readable = 0
    for content in found:
        try:
            raw(content)
            readable += 1
        except StorageError:
            pass
    assert readable == open_segments(tmp_path)
    found.clear()
    content = None
    assert open_segments(tmp_path) == 0
    log.close()


def test_an_answer_is_not_completed_from_another_file(tmp_path: Path) -> None:
    log = open_log(tmp_path, max_open_segments=1)
    fill(log, 2)
    content = topic_log(log, "t0").read(0, 1000, at_least_one=True)
    assert topic_log(log, "t1").read(0, 1000, at_least_one=True) is not None
    (path,) = (tmp_path / "segments" / log.topics["t0"].topic_id.hex()).rglob("*.log")
    copy = path.with_suffix(".copy")
    copy.write_bytes(path.read_bytes())
    copy.rename(path)
    with pytest.raises(DamageError, match="was replaced"):
        raw(content)
    log.close()


def of_a_new_topic(log: Log) -> None:
    append(topic_log(log, "new"), b"x")


def of_a_known_partition(log: Log) -> None:
    append(topic_log(log, "t0"), b"x")


def that_rolls(log: Log) -> None:
    append(topic_log(log, "full"), b"x" * 150)


@pytest.mark.parametrize("again", [of_a_new_topic, of_a_known_partition, that_rolls])
def test_an_append_without_a_descriptor_changes_nothing(tmp_path: Path, again: Callable[[Log], None]) -> None:
    log = open_log(tmp_path, segment_bytes=300, max_open_segments=1)
    append(topic_log(log, "full"), b"x" * 100)
    topic_log(log, "new")
    fill(log, 3)
    for flush_between in (False, True):
        with exhausted(log):
            with pytest.raises(OutOfDescriptors, match="limit on open files"):
                again(log)
            if flush_between:
                log.flush()
        assert log.failure is None
    again(log)
    log.flush()
    found = [values(topic_log(log, name)) for name in ("t0", "new", "full")]
    assert sum(map(len, found)) == 3  # two before, and the one that was refused first
    log.close(clean=False)
    log = open_log(tmp_path)
    assert [values(topic_log(log, name)) for name in ("t0", "new", "full")] == found
    log.close()


def test_a_flush_needs_no_descriptor_that_others_can_take(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=200)
    for index in range(5):
        append(topic_log(log, "wide", 4 - index), b"x" * 100)
        append(topic_log(log, "wide", 4 - index), b"y" * 100)
    with exhausted(log):
        log.flush()
        with pytest.raises(OutOfDescriptors):
            append(topic_log(log, "wide", 0), b"z")
    log.close(clean=False)
    log = open_log(tmp_path)
    for index in range(5):
        assert len(values(topic_log(log, "wide", index))) == 2
    log.close()


def test_a_read_without_a_descriptor_fails_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = open_log(tmp_path, max_open_segments=1)
    fill(log, 4)
    with exhausted(log):
        for _ in range(20):
            for index in range(3):
                with pytest.raises(OutOfDescriptors):
                    topic_log(log, f"t{index}").read(0, 1000, at_least_one=True)
            with pytest.raises(OutOfDescriptors):
                topic_log(log, "t0").offset_for_timestamp(NOW)
    assert len([line for line in caplog.messages if "limit on open files" in line]) == 1
    assert log.failure is None
    assert len(values(topic_log(log, "t0"))) == 1
    log.close()


def test_housekeeping_without_a_descriptor_is_done_later(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=200, min_cleanable_dirty_ratio=0.0, max_open_segments=1)
    compacted = topic_log(log, "compacted", cleanup_policy="compact")
    for _ in range(5):
        append(compacted, (b"key", b"x" * 100))
    append(topic_log(log, "old", retention_ms="1000"), b"x")
    append(topic_log(log, "deleted", 9), b"x")
    log.flush()
    log.delete_topic("deleted")
    log.flush()
    wall_ms = NOW + 60_000
    with exhausted(log):
        # One for each of: removal of the directory, compaction, retention.
        for _ in range(10):
            again_ms = log.sweep(wall_ms)
            log.flush()
        assert again_ms is not None
        assert log.failure is None
    assert list((tmp_path / "segments").glob("*.deleted"))
    sweep(log, wall_ms)
    assert not list((tmp_path / "segments").glob("*.deleted"))
    assert topic_log(log, "old").log_start_offset == 1
    assert len(values(compacted)) == 2
    log.close()


def test_a_stop_without_a_descriptor_leaves_the_rest_to_the_next_start(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    fill(log, 3)
    with exhausted(log):
        log.close()
    log = open_log(tmp_path)
    for index in range(3):
        assert len(values(topic_log(log, f"t{index}"))) == 1
    log.close()


class OpensOfSQLite(apsw.VFS):
    """The paths that SQLite opens, below the VFS of the broker."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.vfs_name = f"opens-{id(self):x}"
        super().__init__(self.vfs_name, "")

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        self.paths.append(name if isinstance(name, str) else name.filename() if name is not None else "temporary")
        return apsw.VFSFile("", name, flags)


def test_sqlite_opens_no_file_after_the_start(tmp_path: Path) -> None:
    vfs, ops = OpensOfSQLite(), FileOps()
    ops.sqlite_vfs = vfs.vfs_name
    for _ in range(2):
        log = open_log(tmp_path, file_ops=ops, segment_bytes=300)
        topic_log(log, "t", 9)
        at_start = len(vfs.paths)
        for number in range(200):
            append(topic_log(log, "t", number % 10), b"x" * 100)
            log.append_rows(OFFSETS_TOPIC, [TopicRow(0, b"%d" % number, b"x" * 40_000, NOW)])
            log.flush()
        sweep(log, NOW + 60_000)
        log.delete_topic("t")
        sweep(log, NOW + 120_000)
        assert vfs.paths[at_start:] == []
        log.close()
