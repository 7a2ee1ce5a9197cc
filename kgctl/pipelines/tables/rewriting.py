"""Replaces committed files: a merge puts the rows of many files into one, retention drops days.

OUT/_staging/<table>+rewrite/<random>/date=.../<random>-<n>.parquet   new files being written

1. The new files are written and synced. 2. The next fold lists them instead of the old ones: its rename is the commit.
3. For each day, a folder with the day's files as they are now (hard links) is exchanged for the day's folder. 4. The staging
folder is deleted, with the old files. A process that dies after step 2 leaves the staging folder; the next writer repeats
steps 3 and 4.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from kgctl.pipelines.tables.durable import exchange, link, make_folder, sync
from kgctl.pipelines.tables.errors import Damaged
from kgctl.pipelines.tables.state import CommittedFile, Fold, TableState, folder_of

_EXCHANGED, _ASIDE = "exchanged", "aside"


@dataclass(frozen=True, slots=True)
class AddedFile:
    """`path` is relative to the staging folder and names the `date=` folder; `schema` as in CommittedFile."""

    path: str
    rows: int
    schema: int


@dataclass(frozen=True, slots=True)
class Rewrite:
    """`staging` has the files of `added`; `removed` are the paths of committed files. Made by `begin_rewrite`."""

    staging: Path
    removed: frozenset[str] = frozenset()
    added: Sequence[AddedFile] = field(default=())

    def next_fold(self, state: TableState) -> Fold:
        return self.begun(state.folded(self.removed, self.named(state)))

    def named(self, state: TableState) -> list[CommittedFile]:
        """The new files with the names that they get in the table's folder."""
        number = state.fold.number + 1
        return [
            CommittedFile(
                path=f"{folder_of(file.path)}/merged-{number}-{at}.parquet",
                staged=file.path,
                rows=file.rows,
                size=os.stat(self.staging / file.path).st_size,
                schema=file.schema,
            )
            for at, file in enumerate(self.added)
        ]

    def begun(self, fold: Fold) -> Fold:
        """A fold that says what is left to do with the folder."""
        return replace(fold, rewrite=self.staging.name, replaced=tuple(sorted(self.removed)))


def begin_rewrite(rewrites: Path, pending: str | None) -> Path:
    """A new staging folder. Deletes those that died before their commit; `pending` is the committed one.

    The caller makes sure that nothing else rewrites the table.
    """
    make_folder(rewrites)
    for name in os.listdir(rewrites):
        if name != pending:
            shutil.rmtree(rewrites / name, ignore_errors=True)
    staging = rewrites / uuid.uuid4().hex[:12]
    make_folder(staging)
    return staging


def refuse_folders(folder: Path, rewrite: Rewrite) -> None:
    """Raises Damaged if a day that changes has a folder: kgctl makes none there, and could not keep it."""
    for day in set(map(folder_of, rewrite.removed)):
        for path in (folder / day).glob("*/"):
            raise Damaged(f"{path}: kgctl did not make this folder; move it to another place")


def restore_days(folder: Path, staging: Path) -> None:
    """Give the table's folder the days that it lacks because a process died between the two renames of `exchange`.

    Deletes nothing, so that others may read. What was written without this day joins it.
    """
    # In an archive, below the folders of topics.
    for aside in sorted((staging / _ASIDE).rglob("date=*")):
        where = aside.relative_to(staging / _ASIDE)
        renewed, day = staging / _EXCHANGED / where, folder / where
        if not renewed.exists():
            continue
        if day.exists():
            for name in sorted(set(os.listdir(renewed)) - set(os.listdir(day))):
                link(renewed / name, day / name)
            sync(day)
        else:
            os.rename(renewed, day)
            sync(day.parent)


def set_aside(staging: Path, path: str) -> Path:
    """Where a file of a day is while the table's folder lacks the day; `path` is relative to that folder."""
    return staging / _ASIDE / path


def finish_rewrite(folder: Path, staging: Path, fold: Fold) -> None:
    """Bring the table's folder to what the fold says, whatever is done already. Raises Damaged."""
    if not staging.exists():
        return
    added = {file.path: file for file in fold.files if (staging / file.staged).exists()}
    for day in sorted(set(map(folder_of, (*fold.replaced, *added)))):
        _renew_day(folder, day, staging, fold, [file for file in added.values() if file.day == day])
    sync(folder)
    for file in (*fold.merged, *added.values()):
        if not (folder / file.path).exists():
            raise Damaged(f"{folder / file.path}: the file of a committed batch is missing")
    shutil.rmtree(staging, ignore_errors=True)


def _renew_day(folder: Path, where: str, staging: Path, fold: Fold, added: list[CommittedFile]) -> None:
    day, aside, renewed = folder / where, staging / _ASIDE / where, staging / _EXCHANGED / where
    if not day.exists():
        return
    there = set(os.listdir(day))
    replaced = {Path(path).name for path in fold.replaced if folder_of(path) == where} & there
    missing = [file for file in added if Path(file.path).name not in there]
    if not replaced and not missing:
        return
    shutil.rmtree(renewed, ignore_errors=True)
    stays = sorted(there - replaced)
    if not stays and not missing:
        make_folder(aside.parent)
        os.rename(day, aside)
        sync(day.parent)
        return
    make_folder(renewed)
    for name in stays:
        link(day / name, renewed / name)
    for file in missing:
        link(staging / file.staged, renewed / Path(file.path).name)
    sync(renewed)
    make_folder(aside.parent)
    exchange(renewed, day, aside)
    sync(day.parent)
