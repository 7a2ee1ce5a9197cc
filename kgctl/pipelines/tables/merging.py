"""Merges small files: the rows of many files of a day go into one. Needs pyarrow, not Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as parquet

from kgctl.pipelines.schemas.model import Table
from kgctl.pipelines.tables.arrow import arrow_schema, read_file
from kgctl.pipelines.tables.manifest import TableFolder
from kgctl.pipelines.tables.rewriting import AddedFile, Rewrite, begin_rewrite
from kgctl.pipelines.tables.state import CommittedFile, TableState

MIB = 1024 * 1024
# A file of half this size stays as it is.
TARGET = 256 * MIB
# In a run: how many files of similar size make a merge, and up to which size. So a row is rewritten a few times a day.
TIER_FILES, TIER_FACTOR, TIER_LIMIT = 16, 8, 64 * MIB
_ROWS_PER_GROUP = 1_000_000
_GROUP_BYTES = 256 * MIB


@dataclass(frozen=True, slots=True)
class Merge:
    """Files of one day that become one."""

    day: str
    files: tuple[CommittedFile, ...]

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)


def all_small(state: TableState, target: int = TARGET) -> list[Merge]:
    """What leaves as few files as possible: for `pipeline maintain`."""
    merges = []
    for day, files in _by_day(state):
        small = [file for file in files if file.size < target // 2]
        group: list[CommittedFile] = []
        size = 0
        for file in small:
            if group and size + file.size > target:
                merges.append(Merge(day, tuple(group)))
                group, size = [], 0
            group.append(file)
            size += file.size
        merges.append(Merge(day, tuple(group)))
    return [merge for merge in merges if len(merge.files) > 1]


def many_alike(state: TableState) -> list[Merge]:
    """What keeps their number low at little cost: for a run between its batches."""
    merges = []
    for day, files in _by_day(state):
        tiers: dict[int, list[CommittedFile]] = {}
        for file in files:
            if file.size < TIER_LIMIT:
                tiers.setdefault(_tier(file.size), []).append(file)
        merges += [Merge(day, tuple(alike)) for alike in tiers.values() if len(alike) >= TIER_FILES]
    return merges


def merge(folder: Path, table: Table, plan: Callable[[TableState], Iterable[Merge]], wait_s: float) -> list[Merge]:
    """Carry a plan out, one day at a time, so that it needs the space of a day. Returns the merges that were made.

    The caller holds the folder as a run does (held_by_one_run): nothing else rewrites the table. Commits continue while
    files are merged. Raises Busy if readers need the files for longer than `wait_s`, Damaged, Newer.
    """
    place = TableFolder(folder)
    merges = list(plan(place.state()))
    for _, of_day in groupby(merges, key=lambda one: one.day):
        _merge_day(place, table, list(of_day), wait_s)
    return merges


def _merge_day(place: TableFolder, table: Table, merges: Sequence[Merge], wait_s: float) -> None:
    with place.writing(wait_s):
        # What a killed writer left is in its place now.
        state = place.state()
    staging = begin_rewrite(place.rewrites, state.fold.rewrite)
    added = []
    paths = {file.path: path for path, file in place.located()}
    for number, one in enumerate(merges):
        target = staging / one.day / f"{number}.parquet"
        target.parent.mkdir(exist_ok=True)
        with parquet.ParquetWriter(target, arrow_schema(table), compression="zstd") as writer:
            rows = _write(writer, table, [(paths[file.path], file) for file in one.files])
        assert rows == sum(file.rows for file in one.files), one
        added.append(AddedFile(f"{one.day}/{number}.parquet", rows, table.version))
    removed = frozenset(file.path for one in merges for file in one.files)
    with place.writing(wait_s) as writing:
        writing.rewrite(Rewrite(staging, removed, added), wait_s)


def _write(writer: parquet.ParquetWriter, table: Table, files: Iterable[tuple[Path, CommittedFile]]) -> int:
    """Return the number of rows. Row groups are filled across files: one per small file would be read slowly."""
    waiting: list[pa.Table] = []
    rows = 0
    for path, file in files:
        waiting.append(read_file(path, table, file.schema))
        rows += len(waiting[-1])
        if sum(map(len, waiting)) >= _ROWS_PER_GROUP or sum(each.nbytes for each in waiting) >= _GROUP_BYTES:
            writer.write_table(pa.concat_tables(waiting), row_group_size=_ROWS_PER_GROUP)
            waiting = []
    if waiting:
        writer.write_table(pa.concat_tables(waiting), row_group_size=_ROWS_PER_GROUP)
    return rows


def _by_day(state: TableState) -> list[tuple[str, list[CommittedFile]]]:
    files = sorted(state.files, key=lambda file: file.day)
    return [(day, list(of_day)) for day, of_day in groupby(files, key=lambda file: file.day)]


def _tier(size: int) -> int:
    """0 for files up to 64 KiB, 1 up to eight times that, ..."""
    tier, limit = 0, 64 * 1024
    while size > limit:
        tier, limit = tier + 1, limit * TIER_FACTOR
    return tier
