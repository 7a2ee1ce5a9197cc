"""Which tables have verdicts. Does not need pyarrow."""

from __future__ import annotations

from collections.abc import Iterable

from kgctl.pipelines.catalog import JOBS
from kgctl.pipelines.schemas.model import Table

OK, UNKNOWN = "OK", "UNKNOWN"


def verdict_tables(jobs: Iterable[str]) -> list[Table]:
    """The tables with verdicts that these jobs write."""
    return [table for name in jobs for table in JOBS[name].writes if table.verdicts]


def statuses_of(tables: Iterable[Table]) -> list[str]:
    """The words that --fail-on can have: all but OK, the worst of a table first."""
    return list(dict.fromkeys(word for table in tables for word in table.verdicts if word != OK))


def rank_of(table: Table, status: str) -> int:
    """0 for the worst status. A word that only a newer kgctl knows is as little as UNKNOWN."""
    words = table.verdicts
    return words.index(status if status in words else UNKNOWN)


def has_events(table: Table) -> bool:
    """Whether the verdict follows from the last event of each metric, instead of the newest evaluation."""
    return "event" in table.column_names
