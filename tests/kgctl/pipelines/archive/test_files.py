"""Tests of the files of an archive: what is written is read again, in offset order, whatever the days of the records."""

from __future__ import annotations

import hashlib
import resource
from collections.abc import Sequence
from pathlib import Path

import pytest

from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.archive import files as archive_files
from kgctl.pipelines.archive.files import read_records, write_files
from kgctl.pipelines.archive.layout import NO_DATE, Addition, ArchivedFile, ReadRange
from kgctl.pipelines.archive.manifest import read_archive, writing
from tests.kgctl.pipelines.archive.making import CLUSTER, NOON_MS, Row, add, facts, raw
from tests.kgctl.pipelines.archive.reading import rows_of

ZERO = TopicPartition("orders", 0)
DAY_MS = 86_400_000


def test_records_come_back_as_they_were(tmp_path: Path) -> None:
    rows = [
        Row(3, None, None, -1),
        Row(4, b"", b"", NOON_MS, (("a", None), ("a", b"\xff\x00"), ("", b""))),
        Row(7, bytes(range(256)), bytes(1000), NOON_MS + 1, (), 1),
    ]
    add(tmp_path, {ZERO: rows}, {ZERO: (2, 9)}, topics=[facts("orders")])
    assert rows_of(read_archive(tmp_path), ZERO) == rows


def test_a_file_is_described_by_its_facts(tmp_path: Path) -> None:
    rows = [Row(3, timestamp_ms=NOON_MS + 5), Row(8, timestamp_ms=NOON_MS)]
    add(tmp_path, {ZERO: rows}, {ZERO: (0, 9)}, topics=[facts("orders")])
    archive = read_archive(tmp_path)
    (file,) = archive.files()
    content = archive.path_of(file).read_bytes()
    assert file.path == "records/topic=orders/date=2026-01-31/batch-00000000-0.parquet"
    assert (file.size, file.sha256) == (len(content), hashlib.sha256(content).hexdigest())
    assert (file.first_offset, file.last_offset, file.records) == (3, 8, 2)
    assert (file.min_timestamp_ms, file.max_timestamp_ms) == (NOON_MS, NOON_MS + 5)
    (range_,) = archive.commits[0].addition.ranges
    assert (range_.start, range_.end, range_.records, range_.gaps) == (0, 9, 2, 7)


def test_days_that_alternate_are_read_in_offset_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive_files, "_MAX_OPEN_FILES", 3)
    monkeypatch.setattr(archive_files, "_ROW_GROUP_BYTES", 200)
    monkeypatch.setattr(archive_files, "_READ_ROWS", 5)
    rows = [Row(at, str(at).encode(), timestamp_ms=NOON_MS + at * at % 7 * DAY_MS) for at in range(0, 200, 2)]
    add(tmp_path, {ZERO: rows}, {ZERO: (0, 200)}, topics=[facts("orders")])
    archive = read_archive(tmp_path)
    assert len(archive.files()) > 10
    assert rows_of(archive, ZERO) == rows
    assert rows_of(archive, ZERO, 31, 77) == [row for row in rows if 31 <= row.offset < 77]


def test_batches_of_large_records_are_small(tmp_path: Path) -> None:
    rows = [Row(at, value=b"%06d" % at * 10_000, timestamp_ms=NOON_MS + at % 3 * DAY_MS) for at in range(60)]
    add(tmp_path, {ZERO: rows}, {ZERO: (0, 60)}, topics=[facts("orders")])
    batches = list(read_records(read_archive(tmp_path), ZERO, batch_bytes=300_000))
    assert [at for batch in batches for at in batch.column("offset").to_pylist()] == list(range(60))
    # Three files are merged.
    assert max(batch.num_rows for batch in batches) <= 3 * 5


@pytest.mark.parametrize("timestamp_ms", [-1, -(2**53), 2**53])
def test_a_record_without_a_day_has_the_null_of_hive(tmp_path: Path, timestamp_ms: int) -> None:
    rows = [Row(0, timestamp_ms=timestamp_ms)]
    add(tmp_path, {ZERO: rows}, {ZERO: (0, 1)}, topics=[facts("orders")])
    archive = read_archive(tmp_path)
    assert [file.path.split("/")[2] for file in archive.files()] == [f"date={NO_DATE}"]
    assert rows_of(archive, ZERO) == rows


def test_a_commit_for_which_the_disk_is_too_small_leaves_nothing(tmp_path: Path) -> None:
    add(tmp_path, {ZERO: [Row(0)]}, {ZERO: (0, 1)}, topics=[facts("orders")])
    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)

    def write(staging: Path) -> list[ArchivedFile]:
        files = write_files([raw(ZERO, [Row(1)])], staging)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, unlimited[1]))
        return files

    def complete(files: Sequence[ArchivedFile]) -> Addition:
        return Addition(CLUSTER, "read_committed", (facts("orders"),), (ReadRange(*ZERO, 1, 2, 1),))

    with writing(tmp_path) as writer:
        try:
            with pytest.raises(OSError, match="File too large"):
                writer.commit(write, complete)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
    assert {path for path in tmp_path.rglob("*") if path.is_file()} == before
