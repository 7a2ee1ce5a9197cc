"""Tests of `verify`: each kind of damage has a finding that names the place."""

from __future__ import annotations

import json
import re
import shutil
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from kgctl.client.net.errors import NotFound
from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.archive import verifying
from kgctl.pipelines.archive.groups import write_groups
from kgctl.pipelines.archive.layout import GROUPS_FILE, GroupsSnapshot, Hole
from kgctl.pipelines.archive.manifest import NotContiguous
from kgctl.pipelines.archive.verifying import verify
from tests.kgctl.pipelines.archive.making import Row, add, facts

ZERO, ONE = TopicPartition("orders", 0), TopicPartition("orders", 1)
FIRST, SECOND = "batch-00000000", "batch-00000001"
FILE = f"records/topic=orders/date=2026-01-31/{FIRST}-0.parquet"
Found = list[tuple[str, int | None, int | None, int | None]]


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """Two commits of two partitions, with gaps."""
    folder = tmp_path / "archive"
    rows = {ZERO: [Row(0), Row(1), Row(4)], ONE: [Row(7)]}
    add(folder, rows, {ZERO: (0, 5), ONE: (5, 8)}, topics=[facts("orders", 2)])
    add(folder, {ZERO: [Row(6)], ONE: [Row(8), Row(9)]}, {ZERO: (5, 9), ONE: (8, 10)})
    write_groups(folder, GroupsSnapshot(1))
    return folder


def test_an_archive_without_damage(archive: Path) -> None:
    verified = verify(archive)
    assert verified.findings == ()
    assert (verified.records, verified.files, verified.gaps) == (7, 4, 7)


def test_a_folder_without_an_archive(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="holds no archive"):
        verify(tmp_path / "nothing")


def test_a_missing_file(archive: Path) -> None:
    (archive / FILE).unlink()
    assert found(archive) == [("missing file", 0, 0, 4)]


@pytest.mark.parametrize("at", [10, 400, -10])
def test_a_changed_byte(archive: Path, at: int) -> None:
    content = bytearray((archive / FILE).read_bytes())
    content[at] ^= 1
    (archive / FILE).write_bytes(content)
    (row,) = verify(archive).findings
    assert (row.finding, row.partition, row.first_offset, row.last_offset) == ("checksum", 0, 0, 4)
    assert "its content has changed since it was committed" in row.detail


def test_a_truncated_file(archive: Path) -> None:
    content = (archive / FILE).read_bytes()
    (archive / FILE).write_bytes(content[:-20])
    (row,) = verify(archive).findings
    assert row.finding == "checksum"
    assert row.detail.endswith(f"{len(content) - 20} bytes, {len(content)} were committed")


def test_swapped_files(archive: Path) -> None:
    other = archive / FILE.replace("-0.parquet", "-1.parquet")
    shutil.move(archive / FILE, archive / "moved")
    shutil.move(other, archive / FILE)
    shutil.move(archive / "moved", other)
    rows = verify(archive).findings
    assert [row.finding for row in rows] == ["checksum", "checksum"]
    assert f"it has the content of {FILE}" in rows[1].detail


def test_a_file_of_no_commit(archive: Path) -> None:
    shutil.copy(archive / FILE, archive / FILE.replace("-0.parquet", "-9.parquet"))
    assert found(archive) == [("unknown file", None, None, None)]


def test_a_file_that_is_committed_meanwhile_is_not_unknown(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def committing(folder: Path) -> list[Path]:
        monkeypatch.undo()
        add(folder, {ZERO: [Row(9)]}, {ZERO: (9, 10)})
        return verifying._stored(folder)

    monkeypatch.setattr(verifying, "_stored", committing)
    assert found(archive) == []
    assert (verify(archive).records, found(archive)) == (8, [])


def test_a_damaged_manifest(archive: Path) -> None:
    path = archive / "records" / "_manifest" / f"{SECOND}.json"
    path.write_text(re.sub('"start": ?5', '"start": 4', path.read_text()))
    (row,) = verify(archive).findings
    assert row.finding == "manifest"
    assert str(path) in row.detail


def test_a_manifest_that_is_gone(archive: Path) -> None:
    (archive / "records" / "_manifest" / f"{FIRST}.json").unlink()
    names = [row.finding for row in verify(archive).findings]
    assert names == ["manifest", "unknown file", "unknown file"]
    (archive / "records" / "_manifest" / f"{SECOND}.json").unlink()
    missing, *others = verify(archive).findings
    assert (missing.finding, missing.detail) == ("manifest", "all commits are missing")
    assert {row.finding for row in others} == {"unknown file"}
    for path in archive.rglob("*.parquet"):
        path.unlink()
    with pytest.raises(NotFound):
        verify(archive)


def test_offsets_that_no_commit_has_read(archive: Path) -> None:
    edit(archive, SECOND, lambda facts: facts["ranges"][0].update(start=6))
    assert found(archive) == [("not archived", 0, 5, 5)]


def test_offsets_that_two_commits_have_read(archive: Path) -> None:
    edit(archive, SECOND, lambda facts: facts["ranges"][0].update(start=3))
    assert found(archive) == [("overlap", 0, 3, 4)]


def test_a_partition_that_was_never_read(archive: Path) -> None:
    edit(archive, FIRST, lambda facts: facts["topics"][0].update(partitions=3))
    assert found(archive) == [("not archived", 2, None, None)]


def test_another_number_of_records_than_were_read(archive: Path) -> None:
    edit(archive, FIRST, lambda facts: facts["ranges"][0].update(records=4))
    assert found(archive) == [("content", 0, 0, 4)]


@pytest.mark.parametrize(
    ("name", "value", "detail"),
    [
        ("records", 2, "its number of records is 3, not 2"),
        ("first_offset", 1, "its first offset is 0, not 1"),
        ("last_offset", 3, "its last offset is 4, not 3"),
        ("min_timestamp_ms", 5, "its oldest timestamp is 1769860800000, not 5"),
        ("partition", 1, "its partition is 0, not 1"),
        ("topic", "other", "its topic is orders, not other"),
    ],
)
def test_a_manifest_that_says_something_else_than_the_file(
    archive: Path, name: str, value: object, detail: str
) -> None:
    edit(archive, FIRST, lambda facts: facts["files"][0].update({name: value}))
    assert any(row.finding == "content" and row.detail.endswith(detail) for row in verify(archive).findings)


def test_a_file_with_other_columns(archive: Path) -> None:
    rewrite(archive, lambda table: table.drop_columns(["headers"]))
    (row,) = [row for row in verify(archive).findings if row.finding == "content" and "columns" in row.detail]
    assert row.partition == 0


def test_a_file_with_an_offset_twice(archive: Path) -> None:
    rewrite(archive, lambda table: pa.concat_tables([table.slice(0, 1), table.slice(0, 2)]))
    details = [row.detail for row in verify(archive).findings]
    assert any(detail.endswith("its offsets do not ascend") for detail in details)
    assert "commit 0 holds 1 offsets more than once" in details


def test_a_hole_is_a_fault_unless_it_is_accepted(archive: Path) -> None:
    add(archive, {ZERO: [Row(20)]}, {ZERO: (20, 21)}, holes=[Hole("orders", 0, 9, 20, 1)])
    assert found(archive) == [("hole", 0, 9, 19)]
    assert [row.ok for row in verify(archive).findings] == [False]
    assert [row.ok for row in verify(archive, accepts_holes=True).findings] == [None]


def test_another_cluster_and_another_topic_id(archive: Path) -> None:
    add(archive, {}, {ZERO: (9, 9)}, topics=[facts("orders", 2, id="other")], cluster_id="elsewhere")
    details = [row.detail for row in verify(archive).findings]
    assert details == ["commit 2 is of another cluster (elsewhere)", "topic orders has two ids: id-of-orders and other"]


def test_a_topic_that_gets_an_id_is_still_one_topic(tmp_path: Path) -> None:
    # Brokers that are upgraded to Kafka 2.8 give ids to the topics that they have.
    for at, id_ in enumerate(("", "id", "", "other")):
        add(tmp_path, {ZERO: [Row(at)]}, {ZERO: (at, at + 1)}, topics=[facts("orders", id=id_)])
    assert [row.detail for row in verify(tmp_path).findings] == ["topic orders has two ids: id and other"]


def test_damaged_committed_offsets(archive: Path) -> None:
    path = archive / GROUPS_FILE
    path.write_text(path.read_text().replace('"taken_ms": 1', '"taken_ms": 2'))
    assert found(archive) == [("manifest", None, None, None)]


def test_a_commit_that_does_not_continue_the_archive_is_refused(archive: Path) -> None:
    for start, end in ((8, 12), (10, 12)):
        with pytest.raises(NotContiguous, match=f"offsets {start} to 11 do not continue at 9"):
            add(archive, {}, {ZERO: (start, end)})
    with pytest.raises(NotContiguous, match="holds records outside of the range"):
        add(archive, {ZERO: [Row(12)]}, {ZERO: (9, 10)})
    assert verify(archive).findings == ()


def found(archive: Path) -> Found:
    return [(row.finding, row.partition, row.first_offset, row.last_offset) for row in verify(archive).findings]


def edit(archive: Path, batch: str, change: Callable[[dict[str, Any]], None]) -> None:
    """Change a manifest, with a checksum that matches."""
    path = archive / "records" / "_manifest" / f"{batch}.json"
    content = json.loads(path.read_text())
    change(content["facts"])
    del content["crc32"]
    content["crc32"] = zlib.crc32(json.dumps(content, sort_keys=True).encode())
    path.write_text(json.dumps(content))


def rewrite(archive: Path, change: Callable[[Any], Any]) -> None:
    """Change a file, with a manifest that has its checksum."""
    import hashlib

    parquet.write_table(change(parquet.ParquetFile(archive / FILE).read()), archive / FILE)
    content = (archive / FILE).read_bytes()

    def update(facts: dict[str, Any]) -> None:
        facts["files"][0].update(sha256=hashlib.sha256(content).hexdigest(), size=len(content))

    edit(archive, FIRST, update)
