"""Extreme logs: limits as large as Kafka allows, and sizes of years."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from kgctl.pipelines.schemas.groups import LOG_ENDS
from kgctl.pipelines.schemas.topics import LOG_AGES, RETENTION
from kgctl.pipelines.transforms.retention import AGES_S, DAY_MS, FACTS_DDL, ages, points, retention

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOW_MS = 1_700_000_000_000
HUGE = 2**63 - 1


def test_huge_logs_and_limits_raise_no_error(spark: SparkSession) -> None:
    """Two logs of 1.4e15 records and 2^60 bytes; one without a limit that counts, one with limits that it exceeds."""
    records, size = 10 * 2**47, 2**60
    facts = spark.createDataFrame(
        [
            ("huge", 0, "delete", HUGE, HUGE, size, NOW_MS - 10 * DAY_MS),
            ("full", 0, "delete", 2 * DAY_MS, size // 2, size, NOW_MS - 10 * DAY_MS),
            ("in nanoseconds", 0, "delete", 2 * DAY_MS, None, size, NOW_MS * 10**6),
        ],
        FACTS_DDL,
    )
    asked = points(facts, NOW_MS).collect()
    assert {row.at_ms for row in asked if row.topic == "huge"} == {NOW_MS - 1000 * age for age in AGES_S}
    # The log grew evenly for ten days.
    ends = [
        (
            row.topic,
            0,
            datetime.fromtimestamp(row.at_ms / 1000, UTC),
            0 if row.at_ms == NOW_MS else None,
            records - records * min(NOW_MS - row.at_ms, 10 * DAY_MS) // (10 * DAY_MS),
            "sampled",
        )
        for row in asked
    ]
    found = spark.createDataFrame(ends, LOG_ENDS.ddl)
    before = spark.createDataFrame([], RETENTION.ddl)
    frame = retention(facts, found, before, NOW_MS)
    rows = {row.topic: row for row in frame.collect()}
    huge, full = rows["huge"], rows["full"]
    assert (rows["in nanoseconds"].oldest, rows["in nanoseconds"].next_expiry) == (None, None)
    assert (huge.expired_records, huge.day_records, huge.next_expiry) == (None, None, None)
    # An eighth of the limit took ten days.
    assert round((huge.size_limit_at - huge.at).total_seconds() / 86_400) == 70
    assert huge.expected_bytes == float(HUGE)
    assert huge.growth_records == pytest.approx(records / 10)
    # Eight days of records are too old, and in a day nine will be. A fifth of the log will stay.
    assert (full.expired_records, full.day_records) == (records * 8 // 10, records * 9 // 10)
    assert full.expired_bytes == pytest.approx(size * 0.8)
    assert full.excess_bytes == size // 2
    assert full.expected_bytes == pytest.approx(2 * full.growth_bytes)
    by_age = ages(facts, found, NOW_MS)
    assert sum(row.bytes for row in by_age.collect() if row.topic == "huge") == pytest.approx(size)
    for made, table in ((frame, RETENTION), (by_age, LOG_AGES)):
        assert made.schema.simpleString() == spark.createDataFrame([], table.ddl).schema.simpleString()
