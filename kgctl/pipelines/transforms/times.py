"""Times of records, which any client can set to any number."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as f

# The end of the year 9999, the last that Python and the readers of Parquet support.
LAST_MS = 253_402_300_799_999


def known_ms(name: str) -> Column:
    """The ms since 1970 of a column; null for -1 and for times outside the calendar."""
    return f.when(f.col(name).between(0, LAST_MS), f.col(name))


def known_time(name: str) -> Column:
    """A timestamp from such a column."""
    return f.timestamp_millis(known_ms(name))
