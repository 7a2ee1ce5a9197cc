"""Data directories read offline: every format, after a crash, with damage; and nothing in them changes."""

from __future__ import annotations

import os
import random
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import google_crc32c
import pytest

from broker.inspection import Check, DataDirectory, NoData, StoreDamageError, inspect, verify
from broker.storage import LEADER_EPOCH, OFFSETS_TOPIC, TopicRow
from broker.storage.store.checked_pages import PAGE_BYTES
from tests.harness.store_damages import flip
from tests.harness.stores import append, open_log, segment_files, topic_log, used

SMALL: dict[str, Any] = {"segment_bytes": 700, "durability": "process"}
FORMATS = ("format_1", "format_4", "format_5", "format_6", "format_7")


def contents(path: Path) -> dict[str, tuple[bytes, int]]:
    return {str(one): (one.read_bytes(), one.stat().st_mtime_ns) for one in path.rglob("*") if one.is_file()}


@contextmanager
def inspected(path: Path) -> Iterator[DataDirectory]:
    """The directory, which is the same afterwards, byte for byte."""
    before = contents(path)
    with inspect(path, damaged_too=True) as directory:
        yield directory
    assert contents(path) == before


def check(path: Path) -> list[Check]:
    with inspected(path) as directory:
        return verify(directory, lambda *_: None)


def damages(path: Path) -> list[tuple[str, str]]:
    """The damaged files, each with the place."""
    return [(os.path.basename(one.file), one.place) for part in check(path) for one in part.damages]


def written(path: Path, *, clean: bool) -> None:
    # The schema is in store.db, and not only in the WAL.
    open_log(path, **SMALL).close()
    log = open_log(path, **SMALL)
    for number in range(40):
        append(topic_log(log), b"value %03d" % number * 3)
        log.append_rows(OFFSETS_TOPIC, [TopicRow(0, b"key %d" % number, b"value", 0)])
        log.flush()
    log.close(clean=clean)


@pytest.mark.parametrize("clean", [True, False])
def test_all_records_are_read_after_a_stop_and_after_a_crash(tmp_path: Path, clean: bool) -> None:
    written(tmp_path, clean=clean)
    assert damages(tmp_path) == []
    with inspected(tmp_path) as directory:
        (partition,) = directory.partitions()
        assert (partition.log_start_offset, partition.log_end_offset) == (0, 40)
        found = [record.offset for batch in directory.records(partition) for record in batch.records]
    assert found == list(range(40))


def test_batches_behind_the_acknowledged_end_count_as_for_the_next_start(tmp_path: Path) -> None:
    log = open_log(tmp_path, **SMALL)
    append(topic_log(log), b"flushed")
    log.flush()
    append(topic_log(log), b"written, not flushed")
    log.close(clean=False)
    with inspected(tmp_path) as directory:
        assert directory.partitions()[0].log_end_offset == 2
    log = open_log(tmp_path, **SMALL)
    assert topic_log(log).log_end_offset == 2
    log.close(clean=False)


@pytest.mark.parametrize("name", FORMATS)
def test_older_formats_are_read_without_a_migration_of_the_directory(tmp_path: Path, name: str) -> None:
    with tarfile.open(Path(__file__).with_name(f"{name}.tar.xz")) as archive:
        archive.extractall(tmp_path, filter="data")
    for store in tmp_path.rglob("store.db"):
        assert damages(store.parent) == []
        with inspected(store.parent) as directory:
            assert directory.format_version == int(name[-1])
            for partition in directory.partitions():
                records = [record for batch in directory.records(partition) for record in batch.records]
                assert records
                assert records[-1].offset < partition.log_end_offset


def flip_first(path: Path, position: int) -> None:
    flip(path, random.Random(0), position, position + 1)


def damage_page(path: Path) -> None:
    flip_first(path / "store.db", 5 * PAGE_BYTES + 100)


def damage_first_page(path: Path) -> None:
    flip_first(path / "store.db", 50)


def truncate_store(path: Path) -> None:
    os.truncate(path / "store.db", 6 * PAGE_BYTES)


def damage_batch(path: Path) -> None:
    flip_first(segment_files(path)[1], 70)


def damage_trailer(path: Path) -> None:
    file = segment_files(path)[0]
    flip_first(file, used(file) + 12)


def remove_segment(path: Path) -> None:
    segment_files(path)[0].unlink()


def swap_segments(path: Path) -> None:
    one, other = segment_files(path)[:2]
    one.write_bytes(other.read_bytes())


def replace_batch_in_active_segment(path: Path) -> None:
    """Another whole batch of the same size and offsets."""
    file = segment_files(path)[-1]
    content = bytearray(file.read_bytes())
    at = content.rindex(b"value 039", 0, used(file))
    content[at : at + 9] = b"value 040"
    start = content.rindex(LEADER_EPOCH.to_bytes(4, "big") + b"\2", 0, at) - 12
    size = 12 + int.from_bytes(content[start + 8 : start + 12], "big")
    content[start + 17 : start + 21] = google_crc32c.value(bytes(content[start + 21 : start + size])).to_bytes(4, "big")
    file.write_bytes(content)


def remove_marker(path: Path) -> None:
    (path / "commit-marker").unlink()


def damage_ends(path: Path) -> None:
    (path / "synced-ends").write_bytes(b"")


def damage_topic_file(path: Path) -> None:
    flip_first(next((path / "segments").glob("*/topic.json")), 20)


DAMAGES: list[tuple[Callable[[Path], None], str, str]] = [
    (damage_page, "store.db", "page 6"),
    (damage_first_page, "store.db", "page 1"),
    (truncate_store, "store.db", "page 7"),
    (damage_batch, ".log", "position 0"),
    (damage_trailer, ".log", "position"),
    (remove_segment, ".log", "offsets 0 to"),
    (swap_segments, ".log", "position"),
    (replace_batch_in_active_segment, ".log", "offsets"),
    (remove_marker, "store.db", "commit-marker"),
    (damage_ends, "synced-ends", "whole file"),
    (damage_topic_file, "topic.json", "whole file"),
]


@pytest.mark.parametrize(("damage", "file", "place"), DAMAGES, ids=lambda one: getattr(one, "__name__", None))
def test_verify_names_file_and_place_of_each_damage(
    tmp_path: Path, damage: Callable[[Path], None], file: str, place: str
) -> None:
    written(tmp_path, clean=True)
    damage(tmp_path)
    found = damages(tmp_path)
    assert [one for one in found if one[0].endswith(file) and one[1].startswith(place)], found


def test_verify_names_acknowledged_commits_that_a_truncated_wal_lacks(tmp_path: Path) -> None:
    written(tmp_path, clean=False)
    wal = tmp_path / "store.db-wal"
    os.truncate(wal, wal.stat().st_size // 2)
    found = {one.place: one.damage for part in check(tmp_path) for one in part.damages}
    assert found["store.db-wal"].startswith("the acknowledged commits ")


def test_verify_names_the_damaged_frame_of_a_wal(tmp_path: Path) -> None:
    written(tmp_path, clean=False)
    flip_first(tmp_path / "store.db-wal", 32 + 24 + 200)
    assert ("store.db", "store.db-wal, position 32") in damages(tmp_path)


def test_a_damaged_page_is_no_wrong_answer(tmp_path: Path) -> None:
    written(tmp_path, clean=True)
    pages = (tmp_path / "store.db").stat().st_size // PAGE_BYTES
    for number in range(1, pages):
        flip_first(tmp_path / "store.db", number * PAGE_BYTES + 1000)
    with (
        pytest.raises(StoreDamageError, match=rf"{tmp_path}/store.db: page \d+ of store.db"),
        inspect(tmp_path) as directory,
    ):
        list(directory.newest_rows(OFFSETS_TOPIC))


def test_a_checkpoint_while_the_store_is_copied_mixes_no_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The WAL is started over between the copies of both files: the copy is made again."""
    log = open_log(tmp_path, **SMALL)

    def commit(number: int) -> None:
        log.append_rows(OFFSETS_TOPIC, [TopicRow(0, b"key", b"%d" % number * 500, 0)])
        log.flush()

    for number in range(10):
        commit(number)
    from broker.storage.inspection import store_copy

    copy, restarts = store_copy.shutil.copyfile, []

    def copy_and_restart(source: Path, target: Path) -> None:
        copy(source, target)
        if source.name == "store.db" and len(restarts) < 2:
            log._store.checkpoint()
            commit(100 + len(restarts))
            restarts.append(source)

    monkeypatch.setattr(store_copy.shutil, "copyfile", copy_and_restart)
    with inspect(tmp_path) as directory:
        (row,) = directory.newest_rows(OFFSETS_TOPIC)
        assert row.value == b"101" * 500
        assert [one for part in verify(directory, lambda *_: None) for one in part.damages] == []
    assert len(restarts) == 2
    log.close(clean=False)


def test_a_directory_without_data_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NoData):
        inspect(tmp_path)
    with pytest.raises(NoData):
        inspect(tmp_path / "missing")
