"""Segment files that the store does not list: only those of deleted topics are removed."""

from __future__ import annotations

import errno
import itertools
import logging
import shutil
from pathlib import Path

import pytest

from broker.storage import DamageError, StorageError
from tests.harness.stores import FaultyOps, append, open_log, segment_files, sweep, topic_log, values

STORE = ("store.db", "store.db-wal", "commit-marker", "synced-ends")


def written(path: Path, *, clean: bool) -> None:
    log = open_log(path, segment_bytes=700)
    for number in range(24):
        append(topic_log(log, f"topic {number % 3}"), b"value %03d" % number * 3)
        log.flush()
    log.close(clean=clean)


def tree(path: Path) -> dict[str, bytes]:
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


@pytest.mark.parametrize("clean", [True, False])
def test_a_missing_store_beside_segments_is_refused(tmp_path: Path, clean: bool) -> None:
    written(tmp_path / "store", clean=clean)
    choices = [set(names) for size in range(4) for names in itertools.combinations(STORE[1:], size)]
    for missing in choices:
        path = tmp_path / "harmed"
        shutil.copytree(tmp_path / "store", path)
        for name in {"store.db", *missing}:
            (path / name).unlink(missing_ok=True)
        if len(missing) == 2:
            (path / "store.db").touch()
        before = tree(path)
        for _ in range(2):
            with pytest.raises(DamageError, match=r"store\.db.* empty or missing.*files of 3 topics"):
                open_log(path)
        assert {name: before[name] for name in before if name.startswith("segments")} == {
            name: content for name, content in tree(path).items() if name.startswith("segments")
        }
        shutil.rmtree(path)


def test_a_store_that_was_never_committed_is_no_damage(tmp_path: Path) -> None:
    ops = FaultyOps()
    open_log(tmp_path / "whole", file_ops=ops).close()
    for fail_at in range(1, ops.count + 1):
        path = tmp_path / f"fault{fail_at}"
        with pytest.raises(StorageError):
            open_log(path, file_ops=FaultyOps(fail_at)).close()
        log = open_log(path)
        assert log.losses == []
        log.close()


def test_a_directory_of_no_topic_is_kept_and_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    written(tmp_path, clean=True)
    stranger = tmp_path / "segments" / "00112233445566778899aabbccddeeff"
    for kept in (f"{stranger.name}.damaged", f"{stranger.name}.2.damaged"):
        shutil.copytree(segment_files(tmp_path)[0].parent.parent, stranger)
        before = tree(stranger)
        log = open_log(tmp_path)
        with caplog.at_level(logging.WARNING):
            sweep(log)
        assert f"{stranger} belongs to no topic of the store; it is kept as {kept}" in caplog.messages
        log.close()
        assert not stranger.exists()
        assert tree(stranger.with_name(kept)) == before


class FailingRename(FaultyOps):
    def rename(self, path: str, new_path: str) -> None:
        if new_path.endswith(".deleted"):
            raise OSError(errno.EIO, "Input/output error")
        super().rename(path, new_path)


def test_a_deleted_topic_is_removed_wherever_the_deletion_stopped(tmp_path: Path) -> None:
    log = open_log(tmp_path, file_ops=FailingRename(), segment_bytes=700)
    for number in range(9):
        append(topic_log(log), b"value %03d" % number * 3)
    log.flush()
    log.delete_topic("t")
    with pytest.raises(StorageError):
        log.flush()
    log.close()
    (directory,) = (tmp_path / "segments").iterdir()
    assert not directory.name.endswith(".deleted")
    for stop in range(1, 200):
        try:
            log = open_log(tmp_path, file_ops=FaultyOps(stop))
        except StorageError:
            continue
        try:
            sweep(log)
            break
        except StorageError:
            pass
        finally:
            log.close(clean=False)
    assert list((tmp_path / "segments").iterdir()) == []
    assert stop > 3
    log = open_log(tmp_path)
    append(topic_log(log), b"again")
    sweep(log)
    assert values(topic_log(log)) == [(0, b"again")]
    log.close()


def test_a_topic_whose_deletion_was_lost_can_be_deleted_again(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(topic_log(log), b"x")
    log.flush()
    directory = tmp_path / "segments" / log.topics["t"].topic_id.hex()
    # What a power cut leaves of a deletion with durability "process", once the topic is written to again.
    shutil.copytree(directory, f"{directory}.deleted")
    log.delete_topic("t")
    log.flush()
    sweep(log)
    assert not list((tmp_path / "segments").glob(f"{directory.name}*"))
    log.close()
