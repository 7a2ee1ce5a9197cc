"""The first failed write or sync is final: no success follows it, and nothing acknowledged before it is lost."""

from __future__ import annotations

import errno
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from broker.storage import OFFSETS_TOPIC, Log, StorageError, TopicRow
from tests.harness.stores import NOW, FaultyOps, append, open_log, sweep, topic_log, values

SETTINGS: dict[str, Any] = {"segment_bytes": 400}
KEY = b"\0\1\0\1g\0\1t\0\0\0\0"
FLUSHES = 8


def work(path: Path, ops: FaultyOps, acknowledged: list[int]) -> None:
    """Flush several times; append the number of each flush to `acknowledged` when it returns."""
    log = open_log(path, file_ops=ops, **SETTINGS)
    try:
        partition = topic_log(log)
        for number in range(FLUSHES):
            append(partition, b"%d" % number * 20)
            log.append_rows(OFFSETS_TOPIC, [TopicRow(1, KEY, b"%d" % number, NOW)])
            log.groups.set_generation_floor("g", number)
            log.flush()
            acknowledged.append(number)
            if number == FLUSHES // 2:
                sweep(log)
    except StorageError:
        expect_stopped(log, path)
        raise
    log.close()


def expect_stopped(log: Log, path: Path) -> None:
    assert log.failure is not None
    with pytest.raises(StorageError) as caught:
        log.flush()
    assert caught.value is log.failure
    with pytest.raises(StorageError):
        append(topic_log(log), b"late")
    with pytest.raises(StorageError):
        log.sweep(NOW)
    with pytest.raises(StorageError):
        log.append_rows(OFFSETS_TOPIC, [TopicRow(1, KEY, b"late", NOW)])
    log.close()


def test_every_single_fault_stops_the_log_and_loses_nothing(tmp_path: Path) -> None:
    ops = FaultyOps()
    work(tmp_path / "whole", ops, [])
    assert {"pwrite", "sync", "sync_directory", "mkdir", "truncate", "sqlite write", "sqlite sync"} <= set(ops.log)
    for fail_at in range(1, ops.count + 1):
        path = tmp_path / f"fault{fail_at}"
        acknowledged: list[int] = []
        with pytest.raises(StorageError, match=r"Input/output error|disk I/O error"):
            work(path, FaultyOps(fail_at), acknowledged)
        log = open_log(path, **SETTINGS)
        assert log.losses == []
        found = [] if "t" not in log.topics else values(topic_log(log))
        assert [offset for offset, _ in found] == list(range(len(found)))
        assert len(found) >= len(acknowledged)
        if acknowledged:
            assert log.groups.generation_floors()["g"] >= acknowledged[-1]
            assert int(log.groups.offset_rows("g")[0].value or b"") >= acknowledged[-1]
        log.close()


def test_the_number_of_a_failed_commit_is_never_reused(tmp_path: Path) -> None:
    def numbers() -> list[int]:
        with sqlite3.connect(f"file:{tmp_path}/store.db?mode=ro", uri=True) as db:
            found = [seq for (seq,) in db.execute("SELECT seq FROM commits ORDER BY seq")]
        db.close()
        return found

    ops = FaultyOps()
    log = open_log(tmp_path, file_ops=ops)
    log.groups.set_generation_floor("g", 1)
    log.flush()
    ops.fail_at = ops.count + 1
    log.groups.set_generation_floor("g", 2)
    with pytest.raises(StorageError):
        log.flush()
    log.close()
    failed = numbers()[-1] + 1
    log = open_log(tmp_path)
    log.groups.set_generation_floor("g", 3)
    log.flush()
    log.close(clean=False)
    assert failed not in numbers()
    assert numbers()[-1] > failed


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EDQUOT])
def test_a_failure_names_the_path_and_the_cause(tmp_path: Path, number: int) -> None:
    ops = FaultyOps(0, number)
    log = open_log(tmp_path, file_ops=ops)
    partition = topic_log(log)
    append(partition, b"a")
    log.flush()
    ops.fail_at = ops.count + 1
    with pytest.raises(StorageError, match=r"cannot write .*0\.log: ") as caught:
        append(partition, b"b")
    assert isinstance(caught.value.__cause__, OSError)
    assert caught.value.__cause__.errno == number
    log.close()


def test_reads_still_work_after_a_failure(tmp_path: Path) -> None:
    ops = FaultyOps()
    log = open_log(tmp_path, file_ops=ops)
    partition = topic_log(log)
    append(partition, b"a")
    log.flush()
    append(partition, b"b")
    ops.fail_at = ops.count + 1
    with pytest.raises(StorageError):
        log.flush()
    assert values(partition) == [(0, b"a")]
    log.close()


def test_running_out_of_descriptors_names_the_limit(tmp_path: Path) -> None:
    class Full(FaultyOps):
        def open(self, path: str, flags: int) -> int:
            if self.fail_at and path.endswith(".log"):
                raise OSError(errno.EMFILE, "Too many open files")
            return super().open(path, flags)

    ops = Full()
    log = open_log(tmp_path, file_ops=ops)
    ops.fail_at = 10**9
    with pytest.raises(StorageError, match=r"limit on open files is \d+"):
        append(topic_log(log), b"a")
    log.close()
