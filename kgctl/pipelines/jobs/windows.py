"""How far in time a batch job has computed its windows; each run continues there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from kgctl.pipelines.jobs.context import RunContext
from kgctl.pipelines.schemas.model import Table
from kgctl.pipelines.tables.formats import open_table

UNTIL = "until_ms"


def computed_until(run: RunContext, table: Table) -> int | None:
    """The end of the last window in the table, ms since 1970; None before the first."""
    until = open_table(run.settings.table_dir(table.name)).state().notes.get(UNTIL)
    return None if until is None else int(until)


def spans(
    run: RunContext, tables: Sequence[Table], first: Callable[[], int | None], until_ms: int
) -> Iterator[tuple[int, int]]:
    """(begin, end) of the times to compute, at most two. If nothing is computed yet they begin at `first()`; None: there is no data.

    The first is what an earlier run wrote to only some of the tables, which are in the order in which they are written: the same
    time again, with the same batch id, adds it to the others.
    """
    computed = [computed_until(run, table) for table in tables]
    begin_ms = first() if computed[-1] is None else computed[-1]
    if begin_ms is None:
        return
    started_ms = max((one for one in computed if one is not None), default=begin_ms)
    for end_ms in (started_ms, until_ms):
        if end_ms > begin_ms:
            yield begin_ms, end_ms
            begin_ms = end_ms


def end_of(now_ms: int, step_ms: int, *, follow: bool) -> int:
    """Where the last window ends: now, or under --follow, which will continue, at the last multiple of the step."""
    return now_ms - now_ms % step_ms if follow else now_ms


def first_window(earliest: DataFrame, step_ms: int) -> int | None:
    """Where the window with this time begins, ms since 1970: the one row of `earliest` has it, or null."""
    (found,) = earliest.toDF("first").select(f.unix_millis("first")).collect()
    return None if found[0] is None else int(found[0]) - int(found[0]) % step_ms
