"""Windows of time: they begin at multiples of a step; the first and the last one end where the time that is computed does."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as f


def between(name: str, begin_ms: int, until_ms: int) -> Column:
    """Whether a timestamp is at or after `begin_ms` and before `until_ms`, ms since 1970. Parquet files can be skipped by it."""
    begin, until = (f.timestamp_millis(f.lit(ms)) for ms in (begin_ms, until_ms))
    return (f.col(name) >= begin) & (f.col(name) < until)


def window(name: str, begin_ms: int, until_ms: int, step_ms: int) -> dict[str, Column]:
    """The columns `w_start` and `w_end` of the window with a timestamp that is `between` the two."""
    start = f.unix_millis(name) - f.pmod(f.unix_millis(name), f.lit(step_ms))
    return {
        "w_start": f.timestamp_millis(f.greatest(start, f.lit(begin_ms))),
        "w_end": f.timestamp_millis(f.least(start + step_ms, f.lit(until_ms))),
    }
