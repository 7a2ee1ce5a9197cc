"""Retention: days of a table that are older than it shall keep are dropped. Does not import Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from kgctl.pipelines.tables.formats import open_table
from kgctl.pipelines.tables.logged import LoggedFolder
from kgctl.pipelines.tables.rewriting import Rewrite, begin_rewrite
from kgctl.pipelines.tables.state import CommittedFile, TableState


@dataclass(frozen=True, slots=True)
class Keep:
    """How many days each table keeps, besides today; None: all."""

    days: int | None = None
    of_table: Mapping[str, int | None] | None = None

    def of(self, table: str) -> int | None:
        return (self.of_table or {}).get(table, self.days)


def expired(state: TableState, days: int | None, today: date | None = None) -> list[CommittedFile]:
    """The files of days (UTC) that ended more than `days` days ago."""
    if days is None:
        return []
    first = _first_kept(days, today)
    return [file for file in state.files if (day := _day(file)) is not None and day < first]


def drop(folder: Path, days: int | None, wait_s: float, today: date | None = None) -> list[CommittedFile]:
    """Drop those files, and return them. The ids of their batches stay known. The caller holds the folder as a run does.

    Raises Busy if readers need the files for longer than `wait_s`, Damaged, Newer.
    """
    place = open_table(folder)
    if isinstance(place, LoggedFolder):
        return _drop_by_log(place, days, wait_s, today)
    with place.writing(wait_s) as writing:
        state = place.state()
        files = expired(state, days, today)
        if files:
            staging = begin_rewrite(place.rewrites, state.fold.rewrite)
            writing.rewrite(Rewrite(staging, frozenset(file.path for file in files)), wait_s)
    return files


def _drop_by_log(place: LoggedFolder, days: int | None, wait_s: float, today: date | None) -> list[CommittedFile]:
    with place.writing(wait_s):
        files = expired(place.state(), days, today)
        if files and days is not None:
            place.drop_before(_first_kept(days, today))
    return files


def _first_kept(days: int, today: date | None) -> date:
    try:
        return (today or datetime.now(UTC).date()) - timedelta(days=days)
    except OverflowError:
        # Before the year 1: all days are kept.
        return date.min


def _day(file: CommittedFile) -> date | None:
    """None: the folder is no day."""
    try:
        return date.fromisoformat(file.day.removeprefix("date="))
    except ValueError:
        return None
