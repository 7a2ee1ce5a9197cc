"""Commits whose writer dies before any change of the file system."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from kgctl.pipelines.tables.manifest import TableFolder
from tests.kgctl.pipelines.tables.dying import DIED, put
from tests.kgctl.pipelines.tables.reading import by_duckdb, by_manifest, by_pyarrow, write_parquet
from tests.kgctl.pipelines.tables.writers import Writers, start_writers

FIRST, SECOND = ["a0", "a1", "a2", "a3", "a4", "a5"], ["b0", "b1", "b2", "b3", "b4", "b5"]
FILES_OF_SECOND = [SECOND[:3], SECOND[3:]]
MAX_CALLS = 500

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def writers() -> Iterator[Writers]:
    with start_writers() as started:
        yield started


@pytest.fixture
def parquet_files(tmp_path: Path) -> dict[str, list[Path]]:
    return {
        batch: [write_parquet(tmp_path / f"{batch}{half}.bytes", rows[3 * half : 3 * half + 3]) for half in (0, 1)]
        for batch, rows in (("first", FIRST), ("second", SECOND))
    }


@pytest.fixture
def before(tmp_path: Path, parquet_files: dict[str, list[Path]]) -> Path:
    """OUT with a table of one committed batch."""
    with TableFolder(tmp_path / "before" / "commits").writing() as writer:
        put(writer, "first", parquet_files["first"])
    return tmp_path / "before"


def test_a_batch_is_complete_or_absent_wherever_its_writer_dies(
    before: Path, tmp_path: Path, parquet_files: dict[str, list[Path]], writers: Writers
) -> None:
    deaths, seen = 0, set()
    for nth in range(1, MAX_CALLS):
        out = tmp_path / "out"
        shutil.copytree(before, out)
        ended = writers.run(out / "commits", nth, "write second", parquet_files["second"])
        deaths += ended == DIED
        seen.add(len(by_manifest(out / "commits")))
        assert troubles(out, parquet_files["second"]) == [], f"died before change {nth}"
        shutil.rmtree(out)
        if ended == 0:
            break
    assert deaths == nth - 1 > 15
    assert seen == {len(FIRST), len(FIRST + SECOND)}


def test_a_recovery_can_die_too(
    before: Path, tmp_path: Path, parquet_files: dict[str, list[Path]], writers: Writers
) -> None:
    left = tmp_path / "left"
    for nth in range(1, MAX_CALLS):
        shutil.copytree(before, left)
        writers.run(left / "commits", nth, "write second", parquet_files["second"])
        if (left / "commits" / "_manifest" / "second.json").exists():
            break
        shutil.rmtree(left)
    for again in range(1, MAX_CALLS):
        out = tmp_path / "out"
        shutil.copytree(left, out)
        ended = writers.run(out / "commits", again, "open")
        assert by_manifest(out / "commits") == FIRST + SECOND
        assert troubles(out, parquet_files["second"]) == [], f"died before change {again}"
        shutil.rmtree(out)
        if ended == 0:
            break
    assert again > 5


def test_files_renamed_before_the_commit_are_noticed(
    before: Path, tmp_path: Path, parquet_files: dict[str, list[Path]], writers: Writers
) -> None:
    found = []
    for nth in range(1, MAX_CALLS):
        out = tmp_path / "out"
        shutil.copytree(before, out)
        ended = writers.run(out / "commits", nth, "write second", parquet_files["second"], variants="names-first")
        found += troubles(out, parquet_files["second"])
        shutil.rmtree(out)
        if ended == 0 or found:
            break
    assert found


def troubles(out: Path, second: list[Path]) -> list[str]:
    """What is wrong in a folder that a dead writer left: at once, after the next writer opened it, and after a repetition."""
    folder = out / "commits"
    whole = [FIRST, FIRST + SECOND]
    found = []
    committed = by_manifest(folder)
    if committed not in whole:
        found.append(f"by manifest: {committed}")
    # Files become visible one by one, and none before the commit.
    parts = (
        [FIRST]
        if committed == FIRST
        else [sorted([*FIRST, *itertools.chain(*some)]) for some in subsets(FILES_OF_SECOND)]
    )
    found += [f"a glob sees {rows}" for rows in (by_pyarrow(folder), by_duckdb(folder)) if rows not in parts]
    with TableFolder(folder).writing():
        pass
    seen = [by_manifest(folder), by_pyarrow(folder), by_duckdb(folder)]
    found += [f"after opening: {rows}" for rows in seen if rows != committed]
    with TableFolder(folder).writing() as writer:
        put(writer, "second", second)
    seen = [by_manifest(folder), by_pyarrow(folder), by_duckdb(folder)]
    found += [f"after a repetition: {rows}" for rows in seen if rows != FIRST + SECOND]
    found += [f"left in staging: {path}" for path in (out / "_staging" / "commits").glob("*")]
    return found


def subsets(files: list[list[str]]) -> list[tuple[list[str], ...]]:
    return [some for count in range(len(files) + 1) for some in itertools.combinations(files, count)]
