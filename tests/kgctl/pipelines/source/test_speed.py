"""The benchmark of the sources reads exactly what was written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kgctl.client.net.errors import KgctlError
from kgctl.pipelines.bench.source_speed import fill, measure
from tests.kgctl.pipelines.source.topics import Topics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_each_round_reads_the_whole_topic(spark: SparkSession, topics: Topics) -> None:
    fill(topics.bootstrap_servers, "speed", 1000, partitions=2, value_bytes=20)
    rows = measure(spark, topics.bootstrap_servers, "speed", with_connector=False, rounds=1)
    keys = sum(len(str(n)) for n in range(1000))
    assert [(row.query, row.source, row.round, row.records, row.value_bytes) for row in rows] == [
        (query, source, number, 1000, None if query == "count" else 20_000 + keys)
        for number in (0, 1)
        for query, source in (
            ("count", "kgctl"),
            ("count", "kgctl, only offset"),
            ("sum", "kgctl"),
            ("parquet", "kgctl"),
        )
    ]
    assert all(row.seconds > 0 and row.records_per_s > 0 for row in rows)


def test_an_existing_topic_is_not_filled(topics: Topics) -> None:
    name = topics.make()
    with pytest.raises(KgctlError, match="it already exists"):
        fill(topics.bootstrap_servers, name, 10)
