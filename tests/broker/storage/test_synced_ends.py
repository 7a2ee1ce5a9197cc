"""Database, commit marker and synced ends must share one history: an older copy of any of them is noticed."""

from __future__ import annotations

import errno
import gc
import itertools
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from broker.storage import DamageError, FileOps, Log, StorageError
from broker.storage.file_ops import Buffer
from tests.broker.storage.power import EarlierOps
from tests.harness.stores import FaultyOps, append, open_log, segment_files, topic_log, values

pytestmark = pytest.mark.usefixtures("quick_collections")

STORE = ("store.db", "store.db-wal")
ENDS, MARKER = "synced-ends", "commit-marker"
COUNT = 12
LATER = ["later 1", "later 2", "later 3"]


def write(log: Log, count: int, topic: str = "t") -> None:
    for number in range(count):
        append(topic_log(log, topic), b"value %03d" % number)
        log.flush()


def keep(path: Path, copy: Path) -> None:
    copy.mkdir()
    for name in (*STORE, ENDS, MARKER):
        if (path / name).exists():
            shutil.copy(path / name, copy / name)


def put_back(copy: Path, path: Path, *names: str) -> None:
    for name in names:
        (path / name).unlink(missing_ok=True)
        if (copy / name).exists():
            shutil.copy(copy / name, path / name)


@contextmanager
def closing_uncleanly(log: Log) -> Iterator[None]:
    try:
        yield
    finally:
        log.close(clean=False)


def used(file: Path) -> int:
    return len(file.read_bytes().rstrip(b"\0"))


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """Two runs on tmp_path/live, and a copy of the files of the first."""
    live = tmp_path / "live"
    log = open_log(live)
    write(log, COUNT // 2)
    log.close()
    keep(live, tmp_path / "older")
    log = open_log(live)
    write(log, COUNT // 2)
    write(log, 3, "second")
    log.close(clean=False)
    return tmp_path / "older"


def test_a_database_that_was_rolled_back_with_its_marker_is_noticed(tmp_path: Path, older: Path) -> None:
    put_back(older, tmp_path / "live", *STORE, MARKER)
    with pytest.raises(DamageError, match=r"store.db is older than .*synced-ends: acknowledged commits \d+ to \d+"):
        open_log(tmp_path / "live")


def test_an_older_database_below_a_newer_wal_is_noticed(tmp_path: Path, older: Path) -> None:
    live = tmp_path / "live"
    open_log(live).close()
    log = open_log(live)
    write(log, 1)
    log.close(clean=False)
    shutil.copytree(live, tmp_path / "newer")
    put_back(older, live, "store.db")
    with pytest.raises(DamageError, match=r"store.db is older than .*store.db-wal: acknowledged commits are lost"):
        open_log(live)
    log = open_log(live, accept_loss=True)
    assert len(values(topic_log(log, "second"))) == 3
    log.close(clean=False)
    open_log(live).close()
    open_log(tmp_path / "newer").close()


def test_an_older_wal_above_a_newer_database_is_set_aside(tmp_path: Path) -> None:
    live = tmp_path / "live"
    log = open_log(live)
    write(log, COUNT, "first")
    log.close(clean=False)
    wal = (live / "store.db-wal").read_bytes()
    log = open_log(live)
    write(log, COUNT, "second")
    log.close()
    (live / "store.db-wal").write_bytes(wal)
    with pytest.raises(DamageError, match="acknowledged commits"):
        open_log(live)
    log = open_log(live, accept_loss=True)
    assert [len(values(topic_log(log, topic))) for topic in ("first", "second")] == [COUNT, COUNT]
    log.close()
    assert (live / "store.db-wal.damaged").read_bytes() == wal


def test_an_older_wal_written_over_the_one_in_use_is_noticed(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    write(log, COUNT)
    older = (tmp_path / "store.db-wal").read_bytes()
    log.close()
    log = open_log(tmp_path)
    write(log, 1)
    (tmp_path / "store.db-wal").write_bytes(older)
    with pytest.raises(StorageError, match=r"store.db-wal was replaced while the broker ran"):
        log.close()
    with pytest.raises(DamageError):
        open_log(tmp_path)
    log = open_log(tmp_path, accept_loss=True)
    assert len(values(topic_log(log))) == COUNT + 1
    log.close()


def test_an_older_database_written_over_the_one_in_use_is_noticed(tmp_path: Path, older: Path) -> None:
    live = tmp_path / "live"
    open_log(live).close()
    log = open_log(live)
    write(log, 1)
    (live / "store.db").write_bytes((older / "store.db").read_bytes())
    with pytest.raises(StorageError, match=r"store.db was replaced while the broker ran"):
        log.close()
    with pytest.raises(DamageError, match=r"store.db is older than .*store.db-wal"):
        open_log(live)


def test_older_synced_ends_are_noticed(tmp_path: Path, older: Path) -> None:
    put_back(older, tmp_path / "live", ENDS)
    for _ in range(2):
        with pytest.raises(DamageError, match=r"synced-ends is older than the commit marker"):
            open_log(tmp_path / "live")


def test_an_older_marker_is_noticed(tmp_path: Path, older: Path) -> None:
    put_back(older, tmp_path / "live", MARKER)
    with pytest.raises(DamageError, match=r"commit-marker is older than .*store.db"):
        open_log(tmp_path / "live")


@pytest.mark.parametrize("slot", [0, 1])
def test_a_damaged_slot_is_no_older_one(tmp_path: Path, slot: int) -> None:
    log = open_log(tmp_path)
    write(log, COUNT)
    log.close(clean=False)
    content = bytearray((tmp_path / ENDS).read_bytes())
    content[128 + slot * 64 + 30] ^= 4
    (tmp_path / ENDS).write_bytes(content)
    with pytest.raises(
        DamageError, match=r"synced-ends does not hold the end of t-0: lost records cannot be ruled out"
    ):
        open_log(tmp_path)
    log = open_log(tmp_path, accept_loss=True)
    assert len(log.losses) == 1
    log.close(clean=False)
    gc.collect()
    log = open_log(tmp_path)
    assert len(values(topic_log(log))) == COUNT
    log.close()


@pytest.mark.parametrize("left", [20, 27, 61, 70])
def test_an_end_that_nothing_proves_is_in_doubt(tmp_path: Path, older: Path, left: int) -> None:
    live = tmp_path / "live"
    put_back(older, live, ENDS)
    for name in STORE:
        (live / name).unlink(missing_ok=True)
    (file,) = [path for path in segment_files(live) if path.read_bytes().count(b"value") == COUNT]
    size = used(file) // COUNT + 1
    os.truncate(file, size * (COUNT - 2) + left)
    log = open_log(live, accept_loss=True)
    assert any("synced-ends is older than the commit marker: lost records cannot be ruled out" in x for x in log.losses)
    # What is left of the header of the next batch proves its offsets.
    assert topic_log(log).log_end_offset == (COUNT - 2 if left < 27 else COUNT - 1)
    assert len(values(topic_log(log))) == COUNT - 2
    log.close()


@pytest.mark.parametrize("clean", [True, False])
def test_synced_ends_without_a_head_or_a_slot_are_refused(tmp_path: Path, clean: bool) -> None:
    log = open_log(tmp_path / "live")
    write(log, COUNT)
    log.close(clean=clean)
    content = (tmp_path / "live" / ENDS).read_bytes()
    harms = {
        "is missing": None,
        "is damaged": [b"", bytes(len(content)), bytes(128) + content[128:], content[:60]],
        "does not hold the end of t-0": [content[:128], content[:128] + bytes(128)],
    }
    for message, contents in harms.items():
        for harm in contents or [None]:
            path = tmp_path / "harmed"
            shutil.copytree(tmp_path / "live", path)
            if harm is None:
                (path / ENDS).unlink()
            else:
                (path / ENDS).write_bytes(harm)
            before = {file.name: file.read_bytes() for file in path.rglob("*") if file.is_file()}
            with pytest.raises(DamageError, match=rf"synced-ends {message}.*cannot be ruled out"):
                open_log(path)
            assert before == {file.name: file.read_bytes() for file in path.rglob("*") if file.is_file()}
            log = open_log(path, accept_loss=True)
            assert len(values(topic_log(log))) == COUNT
            assert len(log.losses) == 1
            log.close(clean=False)
            log = open_log(path)
            assert (len(values(topic_log(log))), log.losses) == (COUNT, [])
            log.close()
            shutil.rmtree(path)


def test_one_damaged_slot_of_a_pair_is_harmless(tmp_path: Path) -> None:
    log = open_log(tmp_path / "live")
    write(log, COUNT)
    log.close(clean=False)
    content = bytearray((tmp_path / "live" / ENDS).read_bytes())
    refused = 0
    for position in range(128, 256, 5):
        path = tmp_path / "flipped"
        shutil.copytree(tmp_path / "live", path)
        flipped = bytearray(content)
        flipped[position] ^= 8
        (path / ENDS).write_bytes(flipped)
        os.truncate(segment_files(path)[0], used(segment_files(path)[0]) - 5)
        # The older slot of the pair still proves all but the last record.
        try:
            log = open_log(path)
        except DamageError:
            refused += 1
        else:
            assert len(values(topic_log(log))) == COUNT - 1
            log.close()
        shutil.rmtree(path)
    assert refused >= 12


def test_a_tail_that_the_row_does_not_announce_is_scanned(tmp_path: Path) -> None:
    """The end of every partition counts, not only of those that were being written to."""
    log = open_log(tmp_path / "live")
    write(log, COUNT // 2)
    log.close()
    keep(tmp_path / "live", tmp_path / "older")
    log = open_log(tmp_path / "live")
    write(log, COUNT // 2)
    log.close(clean=False)
    put_back(tmp_path / "older", tmp_path / "live", *STORE)
    log = open_log(tmp_path / "live", accept_loss=True)
    assert len(values(topic_log(log))) == COUNT
    log.close()


@pytest.mark.parametrize("idle", [False, True])
def test_active_segments_that_changed_places_are_noticed(tmp_path: Path, idle: bool) -> None:
    log = open_log(tmp_path)
    for topic in ("one", "two"):
        for number in range(COUNT):
            append(topic_log(log, topic), b"%s %03d" % (topic.encode(), number))
            log.flush()
    if idle:
        while log.sweep(0) is not None:
            log.flush()
    log.close(clean=False)
    one, two = segment_files(tmp_path)
    one.rename(tmp_path / "kept")
    two.rename(one)
    (tmp_path / "kept").rename(two)
    with pytest.raises(DamageError, match="damaged or was replaced"):
        open_log(tmp_path)


def test_deleted_topics_leave_no_synced_ends(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    write(log, 3)
    log.delete_topic("t")
    log.flush()
    log.close(clean=False)
    assert not (tmp_path / ENDS).read_bytes()[128:].strip(b"\0")
    log = open_log(tmp_path)
    assert log.losses == []
    log.close()


class CutOps(FileOps):
    """After `writes` more writes to the commit marker, every write fails, as the broker was killed."""

    boot_id = b"one boot"
    writes = 1 << 30

    def __init__(self) -> None:
        self._paths: dict[int, str] = {}

    def open(self, path: str, flags: int) -> int:
        fd = super().open(path, flags)
        self._paths[fd] = path
        return fd

    def pwrite(self, fd: int, content: Buffer, position: int) -> int:
        if self._paths[fd].endswith(MARKER):
            if not self.writes:
                raise OSError(errno.EIO, "killed")
            self.writes -= 1
        return super().pwrite(fd, content, position)


@pytest.mark.parametrize("second", ["power", "process"])
@pytest.mark.parametrize("first", ["power", "process"])
def test_runs_that_are_killed_between_commit_and_marker_leave_no_false_evidence(
    tmp_path: Path, first: str, second: str
) -> None:
    for kills in itertools.product((1, 2, 3), repeat=2):
        path = tmp_path / f"{kills}"
        for durability, kill in zip((first, second), kills, strict=True):
            ops = CutOps()
            ops.writes = kill
            with suppress(StorageError):
                log = open_log(path, durability=durability, file_ops=ops)
                append(topic_log(log), b"x")
                with closing_uncleanly(log):
                    log.flush()
            gc.collect()  # the database of a start that failed
        log = open_log(path, durability=second, file_ops=CutOps())
        assert log.losses == []
        log.close()


def test_a_start_that_is_killed_after_a_power_cut_leaves_no_false_evidence(tmp_path: Path) -> None:
    live = tmp_path / "live"
    log = open_log(live, file_ops=EarlierOps())
    write(log, 3)
    stale = (live / MARKER).read_bytes()
    for topic in LATER:
        write(log, 1, topic)
    log.close(clean=False)
    # The last second of the marker may be lost.
    (live / MARKER).write_bytes(stale)
    ops = CutOps()
    ops.writes = 2
    with pytest.raises(StorageError, match="killed"):
        open_log(live, durability="process", file_ops=ops)
    gc.collect()
    log = open_log(live, durability="process", file_ops=CutOps())
    assert ([name for name in log.topics if name.startswith("later")], log.losses) == (LATER, [])
    log.close()


@pytest.mark.parametrize("with_segments", [True, False])
def test_synced_ends_beside_a_new_store_prove_lost_commits_once(tmp_path: Path, with_segments: bool) -> None:
    log = open_log(tmp_path / "live")
    write(log, COUNT)
    write(log, 1, "second")
    log.close()
    for name in (*STORE, MARKER):
        (tmp_path / "live" / name).unlink(missing_ok=True)
    if not with_segments:
        shutil.rmtree(tmp_path / "live" / "segments")
    with pytest.raises(
        DamageError, match=r"commits \d+ to \d+ are lost" if not with_segments else "is empty or missing"
    ):
        open_log(tmp_path / "live")
    log = open_log(tmp_path / "live", accept_loss=True)
    assert len(log.losses) == 1
    log.close(clean=False)
    log = open_log(tmp_path / "live")
    assert log.losses == []
    assert "t" not in log.topics or len(values(topic_log(log))) == COUNT
    log.close()


def test_a_start_after_a_power_cut_may_be_killed_at_each_step(tmp_path: Path) -> None:
    log = open_log(tmp_path / "live", durability="process", file_ops=EarlierOps())
    write(log, COUNT)
    keep(tmp_path / "live", tmp_path / "older")
    log.close()
    put_back(tmp_path / "older", tmp_path / "live", ENDS)
    for step in itertools.count(1):
        path = tmp_path / f"killed at {step}"
        shutil.copytree(tmp_path / "live", path)
        ops = FaultyOps(fail_at=step)
        with suppress(StorageError):
            open_log(path, file_ops=ops).close(clean=False)
        gc.collect()
        for _ in range(2):
            log = open_log(path)
            assert len(values(topic_log(log))) == COUNT
            log.close(clean=False)
        if ops.count < step:
            break
