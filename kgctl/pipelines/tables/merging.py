"""Merges small files: the rows of many files of a day go into one. Needs pyarrow, not Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as parquet

from kgctl.pipelines.schemas.model import Table
from kgctl.pipelines.tables.arrow import arrow_schema, read_file
from kgctl.pipelines.tables.formats import open_table
from kgctl.pipelines.tables.logged import LoggedFolder
from kgctl.pipelines.tables.manifest import TableFolder
from kgctl.pipelines.tables.merge_plans import Merge
from kgctl.pipelines.tables.rewriting import AddedFile, Rewrite, begin_rewrite
from kgctl.pipelines.tables.state import CommittedFile, TableState

_ROWS_PER_GROUP = 1_000_000
_GROUP_BYTES = 256 * 1024 * 1024


def merge(folder: Path, table: Table, plan: Callable[[TableState], Iterable[Merge]], wait_s: float) -> list[Merge]:
    """Carry a plan out, one day at a time, so that it needs the space of a day. Returns the merges that were made.

    The caller holds the folder as a run does (held_by_one_run): nothing else rewrites the table. Commits continue while
    files are merged. Raises Busy if readers need the files for longer than `wait_s`, Damaged, Newer.
    """
    place = open_table(folder)
    merges = list(plan(place.state()))
    if isinstance(place, LoggedFolder):
        if merges:
            with place.writing(wait_s):
                place.merge_files()
        return merges
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
        # An earlier merge must not have used the name: its file would be looked for in this staging folder, too.
        target = staging / one.day / f"{staging.name}-{number}.parquet"
        target.parent.mkdir(exist_ok=True)
        with parquet.ParquetWriter(target, arrow_schema(table), compression="zstd") as writer:
            rows = _write(writer, table, [(paths[file.path], file) for file in one.files])
        assert rows == sum(file.rows for file in one.files), one
        added.append(AddedFile(str(target.relative_to(staging)), rows, table.version))
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
