"""Merges and retention whose process dies before any change of the file system, and random histories of a table with such deaths."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kgctl.pipelines.tables.manifest import TableFolder
from tests.kgctl.pipelines.tables.dying import DIED, put
from tests.kgctl.pipelines.tables.reading import by_duckdb, by_manifest, by_pyarrow, write_parquet
from tests.kgctl.pipelines.tables.writers import NEVER, Writers, start_writers

# A merge makes a few more: those of the second day, which repeat the first.
MOST_CHANGES = 24
DAYS = ("2024-01-01", "2024-01-02")
READERS: tuple[Callable[[Path], list[str]], ...] = (by_manifest, by_pyarrow, by_duckdb)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def writers() -> Iterator[Writers]:
    with start_writers() as started:
        yield started


def rows_of(batch: str) -> list[list[str]]:
    """Of each day."""
    return [[f"{batch}-{day}-{number}" for number in range(3)] for day in DAYS]


def files_of(batch: str, scratch: Path) -> list[Path]:
    return [
        write_parquet(scratch / f"{batch}{day}.bytes", rows) for day, rows in zip(DAYS, rows_of(batch), strict=True)
    ]


@pytest.fixture
def before(tmp_path: Path, writers: Writers) -> Path:
    """OUT with a table of three batches; two are folded and merged, so there is a file of each kind."""
    folder = tmp_path / "before" / "commits"
    for batch in ("a", "b"):
        writers.run(folder, NEVER, f"write {batch}", files_of(batch, tmp_path))
    writers.run(folder, NEVER, "merge")
    writers.run(folder, NEVER, "write c", files_of("c", tmp_path))
    assert len(TableFolder(folder).files()) == 4
    return tmp_path / "before"


WHOLE = sorted(row for batch in "abc" for rows in rows_of(batch) for row in rows)
SECOND_DAY = sorted(row for batch in "abc" for row in rows_of(batch)[1])


@pytest.mark.parametrize(
    ("action", "results", "variants"),
    [
        ("merge", [WHOLE], ""),
        pytest.param("merge", [WHOLE], "no-exchange", marks=pytest.mark.soak),
        ("fold", [WHOLE], ""),
        ("drop 2024-01-01", [WHOLE, SECOND_DAY], ""),
    ],
    ids=["merge", "merge-no-exchange", "fold", "drop"],
)
def test_every_reader_sees_the_table_before_or_after_wherever_the_process_dies(
    before: Path, tmp_path: Path, writers: Writers, action: str, results: list[list[str]], variants: str
) -> None:
    deaths, after = 0, []
    for nth in range(1, MOST_CHANGES):
        out = tmp_path / "out"
        shutil.copytree(before, out)
        folder = out / "commits"
        ended = writers.run(folder, nth, action, variants=variants)
        deaths += ended == DIED
        where = f"died before change {nth}"
        seen = by_manifest(folder)
        assert seen in results, where
        # Without an exchange, a day is missing in the folder if the process dies between two renames.
        parts = results if not variants else [*results, *(rows_without(seen, day) for day in DAYS)]
        assert by_pyarrow(folder) in parts, where
        assert by_duckdb(folder) in parts, where
        with TableFolder(folder).writing() as writer:
            # All ids are known, also those of rows that are merged or dropped.
            assert not any(put(writer, batch, files_of(batch, tmp_path)) for batch in "abc"), where
        assert [read(folder) for read in READERS] == [seen] * 3, where
        writers.run(folder, NEVER, action, variants=variants)
        assert [read(folder) for read in READERS] == [results[-1]] * 3, where
        assert leftovers(out) == [], where
        after.append(seen)
        shutil.rmtree(out)
        if ended == 0:
            break
    assert deaths >= 5
    assert [rows for rows in results if rows not in after] == []


def test_a_day_that_a_kill_left_without_its_folder_is_whole_for_readers_and_the_next_commit(
    before: Path, tmp_path: Path, writers: Writers
) -> None:
    """Where folders cannot be exchanged, while another process reads, and with a file that the merge leaves as it is."""
    writers.run(before / "commits", NEVER, "write d", files_of("d", tmp_path))
    whole = sorted([*WHOLE, *(row for of_day in rows_of("d") for row in of_day)])
    after = sorted([*whole, *(row for of_day in rows_of("e") for row in of_day)])
    missing = 0
    for nth in range(1, 2 * MOST_CHANGES):
        out = tmp_path / "out"
        shutil.copytree(before, out)
        folder = out / "commits"
        ended = writers.run(folder, nth, "merge-two", variants="no-exchange")
        if not all((folder / f"date={day}").exists() for day in DAYS):
            missing += 1
            assert by_manifest(folder) == whole, nth
            with TableFolder(folder).reading():
                paths = TableFolder(folder).files()
                writers.run(folder, NEVER, "write e", files_of("e", tmp_path))
                assert all(path.exists() for path in paths), nth
                assert [read(folder) for read in READERS] == [after] * 3, nth
            writers.run(folder, NEVER, "open")
            assert [read(folder) for read in READERS] == [after] * 3, nth
            assert leftovers(out) == [], nth
        shutil.rmtree(out)
        if ended == 0:
            break
    assert missing == len(DAYS)


def rows_without(rows: list[str], day: str) -> list[str]:
    return [row for row in rows if day not in row]


def leftovers(out: Path) -> list[Path]:
    """Files in staging, and those in the table's folder that are not committed."""
    committed = set(TableFolder(out / "commits").files())
    staged = (out / "_staging").glob("**/*.parquet")
    return [*staged] + [path for path in (out / "commits").glob("**/*.parquet") if path not in committed]


@pytest.mark.parametrize("seed", [0, 1, pytest.param(2, marks=pytest.mark.soak)])
def test_a_random_history_with_deaths_loses_and_doubles_nothing(tmp_path: Path, writers: Writers, seed: int) -> None:
    randomness = random.Random(seed)
    folder = tmp_path / "out" / "commits"
    variants = "fold-often" + (" no-exchange" if seed == 0 else "")
    rows: dict[str, list[list[str]]] = {}
    deaths = 0
    for step in range(50):
        action = randomness.choice(["write", "write", "write", "write", "again", "merge", "drop", "fold", "open"])
        batch = f"job-{seed:08x}-{len(rows):06d}"
        if action == "again" and rows:
            batch = randomness.choice(list(rows))
        line = {"write": f"write {batch}", "again": f"write {batch}", "drop": f"drop {DAYS[0]}"}.get(action, action)
        nth = randomness.randrange(1, 25) if randomness.random() < 0.5 else NEVER
        deaths += writers.run(folder, nth, line, files_of(batch, tmp_path), variants) == DIED
        where = f"step {step}: {line}, {nth}"
        seen = by_manifest(folder)
        if line.startswith("write") and batch not in rows and TableFolder(folder).state().knows(batch):
            rows[batch] = rows_of(batch)
        if action == "drop" and not any(DAYS[0] in row for row in seen):
            rows = {known: [[], each[1]] for known, each in rows.items()}
        expected = sorted(row for each in rows.values() for of_day in each for row in of_day)
        assert seen == expected, where
        if randomness.random() < 0.5:
            writers.run(folder, NEVER, "open")
            assert expected == [] or [read(folder) for read in READERS] == [expected] * 3, where
        state = TableFolder(folder).state()
        assert state.committed == len(rows), where
        assert all(state.knows(known) for known in rows), where
        assert not rows or state.notes == {"until": 7}, where
    assert deaths > 5
    writers.run(folder, NEVER, "open")
    assert leftovers(tmp_path / "out") == []
