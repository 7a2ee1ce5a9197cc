"""`kgctl pipeline maintain`: drops old days and merges small files of all tables in a folder. Imports pyarrow only to merge."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from kgctl.client.net.errors import KgctlError
from kgctl.pipelines.schemas import TABLES
from kgctl.pipelines.tables.formats import open_table
from kgctl.pipelines.tables.manifest import TableFolder, held_by_one_run
from kgctl.pipelines.tables.merge_plans import Merge, all_small
from kgctl.pipelines.tables.retention import Keep, drop, expired
from kgctl.pipelines.tables.state import CommittedFile, TableState

DROP, MERGE = "drop", "merge"
# How long a change waits for a commit or for readers.
WAIT_S = 30.0


class MergeMissing(KgctlError):
    """pyarrow is not installed."""


@dataclass(frozen=True, slots=True)
class Step:
    """What is done with a table: the files before, and how many they are afterwards."""

    table: str
    action: str
    files: tuple[CommittedFile, ...]
    files_after: int

    @property
    def days(self) -> int:
        return len({file.day for file in self.files})

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)


def plan(out: Path, *, keep: Keep, merges: bool) -> list[Step]:
    """What `maintain` would do now. Raises Damaged, Newer."""
    steps = []
    for name in TABLES:
        place = open_table(out / name)
        if merges:
            place.refuse_merge()
        state = place.state()
        old = expired(state, keep.of(name))
        if old:
            steps.append(Step(name, DROP, tuple(old), 0))
        if merges:
            gone = {file.path for file in old}
            steps += _merged(name, [one for one in all_small(state) if not gone & {file.path for file in one.files}])
    return steps


def maintain(out: Path, *, keep: Keep, merges: bool) -> list[Step]:
    """Drop old days, then merge what is left; return what was done.

    Raises Busy if a run uses the folder or a reader needs the files, MergeMissing, Damaged, Newer. What was done before
    stays done.
    """
    if merges and importlib.util.find_spec("pyarrow") is None:
        raise MergeMissing("merging files needs pyarrow: pip install 'kgctl[arrow]'")
    if merges:
        for name in TABLES:
            open_table(out / name).refuse_merge()
    steps = []
    with held_by_one_run(out, "maintains the tables in this folder"):
        for name, table in TABLES.items():
            folder = out / name
            if not open_table(folder).state().committed:
                continue
            old = drop(folder, keep.of(name), WAIT_S)
            if old:
                steps.append(Step(name, DROP, tuple(old), 0))
            if merges:
                from kgctl.pipelines.tables.merging import merge

                steps += _merged(name, merge(folder, table, all_small, WAIT_S))
                _fold(open_table(folder))
    return steps


def _fold(place: TableFolder) -> None:
    if place.loose():
        with place.writing(WAIT_S) as writer:
            writer.fold()


def _merged(name: str, merges: Iterable[Merge]) -> list[Step]:
    made = list(merges)
    return [Step(name, MERGE, tuple(file for one in made for file in one.files), len(made))] if made else []


def has_tables(out: Path) -> bool:
    return any(state.committed for state in states(out).values())


def states(out: Path) -> dict[str, TableState]:
    """Of each table of the catalog. Raises Damaged, Newer."""
    return {name: open_table(out / name).state() for name in TABLES}
