"""A log whose data directory is removed or replaced: nothing is acknowledged, and nothing outside is touched."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.directory_lock import Hold, hold
from broker.storage import FileOps, Log, LogSettings, ReplacedError
from tests.harness.stores import NOW, append, topic_log


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Hold]:
    (tmp_path / "d").mkdir()
    held = hold(tmp_path / "d")
    yield held
    held.close()


def replace(data_dir: Path) -> None:
    data_dir.rename(data_dir.with_name("moved"))
    data_dir.mkdir()
    (data_dir / "segments").mkdir()


@pytest.mark.parametrize("durability", ["power", "process"])
def test_a_flush_into_a_replaced_directory_fails(tmp_path: Path, held: Hold, durability: str):
    log = Log.open(tmp_path / "d", LogSettings(durability=durability), wall_ms=NOW, held=held)
    partition = topic_log(log)
    append(partition, b"one")
    log.flush()
    append(partition, b"two")
    replace(tmp_path / "d")
    with pytest.raises(ReplacedError, match="another directory took the place"):
        log.flush()
    assert partition.high_watermark == 1
    with pytest.raises(ReplacedError):
        log.sweep(NOW)
    log.close()
    assert [path.name for path in (tmp_path / "d").rglob("*")] == ["segments"]


def test_a_check_notices_a_replaced_directory_and_is_final(tmp_path: Path, held: Hold):
    log = Log.open(tmp_path / "d", LogSettings(), wall_ms=NOW, held=held)
    log.check_directory()
    (tmp_path / "d").rename(tmp_path / "moved")
    with pytest.raises(ReplacedError):
        log.check_directory()
    (tmp_path / "moved").rename(tmp_path / "d")
    with pytest.raises(ReplacedError):
        log.check_directory()
    log.close()


class NotYetNoticed:
    """A held directory that was replaced after the check and before the change."""

    def __init__(self, held: Hold) -> None:
        self.path, self.descriptor = held.path, held.descriptor

    def lost(self) -> str | None:
        return None


def test_no_change_leaves_the_held_directory(tmp_path: Path, held: Hold):
    data_dir = tmp_path / "d"
    ops = FileOps()
    ops.directory = NotYetNoticed(held)
    for name in ("file", "other"):
        (data_dir / name).write_text("old")
    (data_dir / "directory").mkdir()
    replace(data_dir)
    for name in ("file", "other", "created"):
        (data_dir / name).write_text("new")
    (data_dir / "directory").mkdir()

    ops.unlink(str(data_dir / "file"))
    ops.rename(str(data_dir / "other"), str(data_dir / "renamed"))
    ops.rmdir(str(data_dir / "directory"))
    ops.mkdir(str(data_dir / "made"))
    descriptor = ops.open(str(data_dir / "created"), os.O_RDWR | os.O_CREAT)
    ops.pwrite(descriptor, b"old", 0)
    ops.close(descriptor)
    ops.sync_directory(str(data_dir))

    assert {path.name for path in data_dir.iterdir()} == {"file", "other", "created", "directory", "segments"}
    assert {path.read_text() for path in data_dir.iterdir() if path.is_file()} == {"new"}
    assert {path.name for path in (tmp_path / "moved").iterdir()} == {"lock", "renamed", "made", "created"}
