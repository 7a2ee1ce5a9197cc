"""Which small files become one. Does not import pyarrow."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from kgctl.pipelines.tables.state import CommittedFile, TableState

MIB = 1024 * 1024
# A file of half this size stays as it is.
TARGET = 256 * MIB
# In a run: how many files of similar size make a merge, and up to which size. So a row is rewritten a few times a day.
TIER_FILES, TIER_FACTOR, TIER_LIMIT = 16, 8, 64 * MIB


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
                tiers.setdefault(tier(file.size), []).append(file)
        merges += [Merge(day, tuple(alike)) for alike in tiers.values() if len(alike) >= TIER_FILES]
    return merges


def _by_day(state: TableState) -> list[tuple[str, list[CommittedFile]]]:
    files = sorted(state.files, key=lambda file: file.day)
    return [(day, list(of_day)) for day, of_day in groupby(files, key=lambda file: file.day)]


def tier(size: int) -> int:
    """0 for files up to 64 KiB, 1 up to eight times that, ..."""
    found, limit = 0, 64 * 1024
    while size > limit:
        found, limit = found + 1, limit * TIER_FACTOR
    return found
