"""Tests of a table's folder: commits, repetitions, damage, and two programs at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kgctl.exit_codes import exit_code_of
from kgctl.pipelines.tables.manifest import Busy, Damaged, Newer, StagedFile, TableFolder
from tests.kgctl.pipelines.tables.dying import put
from tests.kgctl.pipelines.tables.reading import by_duckdb, by_manifest, by_polars, by_pyarrow, write_parquet

ROWS = ["a0", "a1", "a2"]
HOLD = """
import sys
from pathlib import Path
from kgctl.pipelines.tables.manifest import TableFolder
with TableFolder(Path(sys.argv[1])).writing():
    print("held", flush=True)
    sys.stdin.read()
"""
WRITE_MANY = """
import sys
from pathlib import Path
from kgctl.pipelines.tables.manifest import TableFolder
from tests.kgctl.pipelines.tables.dying import put
for number in range(int(sys.argv[3])):
    with TableFolder(Path(sys.argv[1])).writing() as writer:
        put(writer, f"more-{number}", [Path(sys.argv[2])])
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write_parquet(tmp_path / "rows", ROWS)


@pytest.fixture
def table(tmp_path: Path) -> TableFolder:
    return TableFolder(tmp_path / "out" / "commits")


def test_a_missing_folder_is_an_empty_table_and_is_not_created(table: TableFolder) -> None:
    assert (table.state().committed, table.files(), table.rows(), table.state().knows("a")) == (0, [], 0, False)
    assert not table.folder.parent.exists()


def test_every_reader_sees_a_commit(table: TableFolder, file: Path) -> None:
    with table.writing() as writer:
        assert put(writer, "job-1", [file])
    assert [path.relative_to(table.folder).as_posix() for path in table.files()] == ["date=2024-01-01/job-1-0.parquet"]
    for read in (by_manifest, by_pyarrow, by_duckdb, by_polars):
        assert read(table.folder) == ROWS
    (batch,) = table.state().batches
    assert (batch.id, batch.rows, batch.notes) == ("job-1", 3, {"until": 7})
    assert table.state().knows("job-1")


def test_the_first_commit_of_a_batch_id_wins(table: TableFolder, file: Path, tmp_path: Path) -> None:
    other = write_parquet(tmp_path / "other", ["b0"])
    with table.writing() as writer:
        assert put(writer, "job-1", [file])
        assert not put(writer, "job-1", [other])
        assert list(table.staging.iterdir()) == []
    assert by_manifest(table.folder) == by_duckdb(table.folder) == ROWS


def test_batches_are_in_commit_order(table: TableFolder, file: Path) -> None:
    for batch in ("z", "y", "x"):
        with table.writing() as writer:
            put(writer, batch, [file])
        retime(table, batch, {"z": 1, "y": 2, "x": 3}[batch])
    assert [batch.id for batch in table.state().batches] == ["z", "y", "x"]


def test_a_batch_may_have_notes_and_no_files(table: TableFolder) -> None:
    with table.writing() as writer:
        staging = writer.stage("job-1")
        staging.mkdir()
        assert writer.commit("job-1", staging, [], {"until": 9})
    assert [(batch.rows, batch.notes) for batch in table.state().batches] == [(0, {"until": 9})]


@pytest.mark.parametrize("batch", ["", "../a", "a/b", ".a", "a b", "a" * 182])
def test_a_batch_id_that_is_not_a_file_name_is_refused(table: TableFolder, batch: str) -> None:
    with table.writing() as writer, pytest.raises(ValueError, match="not a batch id"):
        writer.stage(batch)


def test_no_reader_sees_staged_files_and_the_next_writer_deletes_them(table: TableFolder, file: Path) -> None:
    with table.writing() as writer:
        put(writer, "job-1", [file])
        left = writer.stage("job-2") / "date=2024-01-01" / "part-0.parquet"
        left.parent.mkdir(parents=True)
        left.write_bytes(b"torn")
    for read in (by_manifest, by_pyarrow, by_duckdb, by_polars):
        assert read(table.folder) == ROWS
    with table.writing():
        assert not left.exists()


def test_a_missing_staged_file_fails_the_commit(table: TableFolder) -> None:
    with table.writing() as writer:
        staging = writer.stage("job-1")
        staging.mkdir()
        with pytest.raises(FileNotFoundError):
            writer.commit("job-1", staging, [StagedFile("date=2024-01-01/part-0.parquet", 1)])
    assert table.state().committed == 0


def test_each_step_of_the_commit_is_synced_before_the_next(
    table: TableFolder, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[str, str]] = []
    fsync, replace = os.fsync, os.replace

    def record_sync(descriptor: int) -> None:
        calls.append(("sync", os.readlink(f"/proc/self/fd/{descriptor}")))
        fsync(descriptor)

    def record_rename(source: Path, target: Path) -> None:
        calls.append(("rename", str(target)))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", record_sync)
    monkeypatch.setattr(os, "replace", record_rename)
    with table.writing() as writer:
        put(writer, "job-1", [file])
    day = table.folder / "date=2024-01-01"
    commit = calls.index(("rename", str(table.manifests / "job-1.json")))
    named = calls.index(("rename", str(day / "job-1-0.parquet")))
    before = [Path(path) for what, path in calls[:commit] if what == "sync"]
    (staging,) = {path for path in before if path.parent == table.staging}
    assert {
        staging / "date=2024-01-01" / "part-00000-c000.zstd.parquet",
        staging / "date=2024-01-01",
        table.staging,
    } <= set(before)
    assert before[-1] == table.manifests / "job-1.new"
    assert ("sync", str(table.manifests)) in calls[commit:named]
    assert ("sync", str(table.folder)) in calls[commit:named]
    assert ("sync", str(day)) in calls[named:]


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "other"])
def test_a_damaged_manifest_is_reported(table: TableFolder, file: Path, damage: str) -> None:
    with table.writing() as writer:
        put(writer, "job-1", [file])
    path = table.manifests / "job-1.json"
    whole = path.read_text()
    damaged = {"cut": whole[:-20], "flipped": whole.replace('"rows":3', '"rows":4'), "empty": "", "other": "[]"}
    path.write_text(damaged[damage])
    with pytest.raises(Damaged, match=r"_manifest/job-1\.json: the manifest is damaged"):
        table.files()


def test_a_manifest_of_a_newer_format_is_not_called_damaged(table: TableFolder, file: Path) -> None:
    with table.writing() as writer:
        put(writer, "job-1", [file])
    path = table.manifests / "job-1.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "version": 3}))
    with pytest.raises(Newer, match="written by a newer kgctl"):
        table.state()


@pytest.mark.parametrize("damage", ["cut", "gone"])
def test_a_truncated_or_missing_file_is_reported(table: TableFolder, file: Path, damage: str) -> None:
    with table.writing() as writer:
        put(writer, "job-1", [file])
    (path,) = table.files()
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-1])
    else:
        path.unlink()
    with pytest.raises(
        Damaged, match=r"job-1-0\.parquet: " + ("the file.* missing" if damage == "gone" else r"\d+ bytes")
    ):
        table.files()


@pytest.fixture
def holder(table: TableFolder) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", HOLD, str(table.folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        yield other
        other.kill()


def test_a_second_writer_learns_which_process_holds_the_table(
    table: TableFolder, file: Path, holder: subprocess.Popen[str]
) -> None:
    with pytest.raises(Busy, match=rf"commits: process {holder.pid} is writing") as refused, table.writing():
        pass
    assert exit_code_of(refused.value) == 6
    assert table.state().committed == 0
    holder.kill()
    holder.wait()
    with table.writing() as writer:
        assert put(writer, "job-1", [file])


def test_readers_see_complete_batches_during_writes(table: TableFolder, file: Path) -> None:
    with table.writing() as writer:
        put(writer, "job-0", [file])
    command = [sys.executable, "-c", WRITE_MANY, str(table.folder), str(file), "40"]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as writing:
        while writing.poll() is None:
            assert len(by_manifest(table.folder)) % 3 == 0
            assert len(by_duckdb(table.folder)) % 3 == 0
        assert writing.returncode == 0
    assert len(by_manifest(table.folder)) == len(by_duckdb(table.folder)) == 41 * 3


def test_the_manifest_needs_only_the_standard_library() -> None:
    heavy = "{'pyspark', 'pyarrow', 'numpy', 'pandas'}"
    program = f"import sys, kgctl.pipelines.tables.manifest; sys.exit(bool({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def retime(table: TableFolder, batch: str, committed_ms: int) -> None:
    """Change the time of the commit."""
    from kgctl.pipelines.tables.state import checksum

    path = table.manifests / f"{batch}.json"
    content = json.loads(path.read_text())
    del content["crc32"]
    content["committed_ms"] = committed_ms
    content["crc32"] = checksum(content)
    path.write_text(json.dumps(content))
