"""A session is as the jobs need it, and leaves nothing behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_query_with_a_shuffle_answers(spark: SparkSession) -> None:
    rows = spark.range(100).selectExpr("id % 3 as k").groupBy("k").count().orderBy("k").collect()
    assert [(row["k"], row["count"]) for row in rows] == [(0, 34), (1, 33), (2, 33)]
