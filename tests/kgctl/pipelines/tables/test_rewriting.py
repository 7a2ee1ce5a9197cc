"""Folds, merges and retention of one table, and readers beside them."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from kgctl.pipelines.schemas.model import Column, Table
from kgctl.pipelines.tables import manifest, rewriting
from kgctl.pipelines.tables.durable import write_durably
from kgctl.pipelines.tables.manifest import FOLD_AT, Batch, Busy, Damaged, StagedFile, TableFolder
from kgctl.pipelines.tables.merge_plans import TIER_FILES, Merge, all_small, many_alike
from kgctl.pipelines.tables.merging import merge
from kgctl.pipelines.tables.retention import drop, expired
from kgctl.pipelines.tables.state import TableState, fold_to_json
from tests.kgctl.pipelines.tables.dying import put
from tests.kgctl.pipelines.tables.reading import by_duckdb, by_manifest, by_polars, by_pyarrow, write_parquet

TABLE = Table("commits", "rows", (Column("a", "string", "a row"),), day_of="a")
READERS = (by_manifest, by_pyarrow, by_duckdb, by_polars)
BATCHES = 5
MERGE_FOREVER = """
import sys
from pathlib import Path
from kgctl.pipelines.tables.manifest import TableFolder
from kgctl.pipelines.tables.merge_plans import all_small
from kgctl.pipelines.tables.merging import merge
from tests.kgctl.pipelines.tables.dying import TABLE, put
folder = Path(sys.argv[1])
for number in range(int(sys.argv[3])):
    with TableFolder(folder).writing() as writer:
        put(writer, f"more-{number}", [Path(sys.argv[2])])
    merge(folder, TABLE, all_small, 5)
"""


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    return [write_parquet(tmp_path / f"{day}.bytes", [f"{day}{number}" for number in range(3)]) for day in "ab"]


@pytest.fixture
def table(tmp_path: Path, files: list[Path]) -> TableFolder:
    """Five batches with a file in each of two days."""
    table = TableFolder(tmp_path / "out" / "commits")
    write(table, files, BATCHES)
    return table


def write(table: TableFolder, files: list[Path], count: int, first: int = 0) -> None:
    with table.writing() as writer:
        for number in range(first, first + count):
            assert put(writer, f"job-{number:06d}", files)


def test_a_merge_leaves_one_file_per_day_and_all_rows(table: TableFolder, files: list[Path]) -> None:
    rows = by_manifest(table.folder)
    made = merge(table.folder, TABLE, all_small, 0)
    assert [(one.day, len(one.files)) for one in made] == [("date=2024-01-01", 5), ("date=2024-01-02", 5)]
    assert [path.parent.name for path in table.files()] == ["date=2024-01-01", "date=2024-01-02"]
    assert [read(table.folder) for read in READERS] == [rows] * 4
    state = table.state()
    assert (state.committed, state.rows, state.notes, state.batches) == (BATCHES, len(rows), {"until": 7}, ())
    with table.writing() as writer:
        assert not put(writer, "job-000003", files)
    assert merge(table.folder, TABLE, all_small, 0) == []
    write(table, files, 1, BATCHES)
    assert len(merge(table.folder, TABLE, all_small, 0)) == 2
    assert len(table.files()) == 2
    assert not any(table.rewrites.iterdir())


def test_a_merge_fills_files_up_to_the_target_and_leaves_large_ones(table: TableFolder) -> None:
    size = table.state().files[0].size
    plans = all_small(table.state(), target=3 * size)
    assert [len(one.files) for one in plans] == [3, 2, 3, 2]
    assert all_small(table.state(), target=2 * size) == []


def test_a_run_merges_only_many_files_of_similar_size(table: TableFolder, files: list[Path]) -> None:
    assert many_alike(table.state()) == []
    write(table, files, TIER_FILES - BATCHES, BATCHES)
    assert [len(one.files) for one in many_alike(table.state())] == [TIER_FILES] * 2
    large = TableState(table.state().fold, table.state().loose[:-1])
    assert many_alike(large) == []


def test_retention_drops_days_and_keeps_the_ids(table: TableFolder, files: list[Path]) -> None:
    second = date(2024, 1, 2)
    assert expired(table.state(), None, second) == expired(table.state(), 1, second) == []
    dropped = drop(table.folder, 0, 0, second)
    assert {file.day for file in dropped} == {"date=2024-01-01"}
    assert [read(table.folder) for read in READERS] == [sorted(["b0", "b1", "b2"] * BATCHES)] * 4
    assert not (table.folder / "date=2024-01-01").exists()
    drop(table.folder, 0, 0, date(2024, 2, 1))
    assert (by_manifest(table.folder), table.state().committed) == ([], BATCHES)
    with table.writing() as writer:
        assert not put(writer, "job-000000", files)


def test_a_merged_file_is_not_taken_for_that_of_the_merge_that_a_kill_stopped(
    table: TableFolder, files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where folders cannot be exchanged, between the two renames: the day has no folder then."""

    def only_new(state: TableState) -> list[Merge]:
        return [replace(one, files=one.files[1:]) for one in all_small(state)]

    def die(one: Path, other: Path, aside: Path) -> None:
        os.rename(other, aside)
        raise KeyboardInterrupt

    merge(table.folder, TABLE, all_small, 0)
    others = [write_parquet(tmp_path / f"{day}.bytes", [f"{day}{number}" for number in range(3)]) for day in "cd"]
    write(table, others, BATCHES, BATCHES)
    rows = by_manifest(table.folder)
    monkeypatch.setattr(rewriting, "exchange", die)
    with pytest.raises(KeyboardInterrupt):
        merge(table.folder, TABLE, only_new, 0)
    assert not (table.folder / "date=2024-01-01").exists()
    assert by_manifest(table.folder) == rows
    # As in older tables: each merge gave its files the same names.
    as_before = [replace(file, staged=f"{file.day}/0.parquet") for file in table.state().fold.merged]
    newest = table.rewrites / str(table.state().fold.rewrite)
    for path in newest.glob("date=*/*.parquet"):
        path.rename(path.parent / "0.parquet")
    write_durably(table.manifests / manifest.FOLD, fold_to_json(replace(table.fold(), merged=tuple(as_before))))
    assert by_manifest(table.folder) == rows
    monkeypatch.undo()
    with table.writing():
        assert [read(table.folder) for read in READERS] == [rows] * 4


def test_other_files_in_a_day_stay(table: TableFolder) -> None:
    other = table.folder / "date=2024-01-01" / "notes.txt"
    other.write_text("mine")
    merge(table.folder, TABLE, all_small, 0)
    assert other.read_text() == "mine"
    (table.folder / "date=2024-01-01" / "mine").mkdir()
    with pytest.raises(Damaged, match="mine: kgctl did not make this folder"):
        drop(table.folder, 0, 0, date(2024, 1, 2))
    assert len(by_manifest(table.folder)) == 2 * 3 * BATCHES


def test_thousands_of_batches_are_read_from_a_few_files(tmp_path: Path, files: list[Path]) -> None:
    table = TableFolder(tmp_path / "out" / "commits")
    count = 2_000
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        with table.writing() as writer:
            for number in range(count):
                staging = writer.stage(f"job-{number:06d}")
                staging.mkdir()
                staged = [StagedFile("date=2024-01-01/a.parquet", 3)] if number % 100 == 0 else []
                for file in staged:
                    (staging / file.path).parent.mkdir()
                    (staging / file.path).write_bytes(files[0].read_bytes())
                writer.commit(f"job-{number:06d}", staging, staged, {"until": number})
    manifest._fold_file.cache_clear()
    state = table.state()
    assert (state.committed, len(state.files), state.notes) == (count, 20, {"until": count - 1})
    assert len(os.listdir(table.manifests)) < FOLD_AT + 4
    assert (table.manifests / manifest.FOLD).stat().st_size < 10_000


def test_a_reader_finds_in_the_fold_what_was_folded_while_it_read(
    table: TableFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = manifest._read_batch

    def fold_first(path: Path) -> Batch:
        monkeypatch.setattr(manifest, "_read_batch", read)
        with table.writing() as writer:
            writer.fold()
        return read(path)

    monkeypatch.setattr(manifest, "_read_batch", fold_first)
    assert table.rows() == 2 * 3 * BATCHES


def test_a_batch_with_facts_is_kept_as_a_whole(table: TableFolder) -> None:
    with table.writing() as writer:
        staging = writer.stage("archive-1")
        staging.mkdir()
        writer.commit("archive-1", staging, [], facts={"ranges": [1, 2]})
        writer.fold()
    kept = table.batch("archive-1")
    assert kept is not None
    assert kept.facts == {"ranges": [1, 2]}
    assert table.loose() == []


def test_files_stay_while_a_reader_needs_them(table: TableFolder, files: list[Path]) -> None:
    rows = by_manifest(table.folder)
    with table.reading():
        paths = table.files()
        with pytest.raises(Busy, match="a process reads this table"):
            merge(table.folder, TABLE, all_small, 0)
        write(table, files, 1, BATCHES)
        assert all(path.exists() for path in paths)
    assert merge(table.folder, TABLE, all_small, 0)
    assert by_manifest(table.folder) == sorted([*rows, "a0", "a1", "a2", "b0", "b1", "b2"])


def test_readers_of_the_folder_never_see_a_row_twice_or_not_at_all_during_merges(
    tmp_path: Path, files: list[Path]
) -> None:
    table = TableFolder(tmp_path / "out" / "commits")
    write(table, files[:1], BATCHES)
    before, readings = 3 * BATCHES, 0
    command = [sys.executable, "-c", MERGE_FOREVER, str(table.folder), str(files[0]), "40"]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as merging:
        while merging.poll() is None:
            with table.reading():
                seen = len(by_manifest(table.folder))
            assert seen % 3 == 0
            assert seen >= before
            before = seen
            try:
                globbed = len(by_duckdb(table.folder))
            except Exception as error:  # noqa: BLE001  DuckDB's kind of error depends on its moment
                # Listed before the merge, opened after it.
                assert "No such file" in str(error) or "Cannot open" in str(error), error  # noqa: PT017
                continue
            readings += 1
            assert globbed % 3 == 0
            assert globbed >= seen
        assert merging.returncode == 0
    assert readings > 5
    assert len(by_manifest(table.folder)) == 3 * (BATCHES + 40)
