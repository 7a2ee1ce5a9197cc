"""Anomalies in incidents that `record` recorded on a broker, with buckets of five seconds."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet
import pytest

from kgctl.pipelines.schemas.group_facts import ANOMALIES, COMMIT_RATES, EXPECTED
from kgctl.pipelines.schemas.groups import LAG, REBALANCES
from kgctl.pipelines.transforms import expected
from kgctl.pipelines.transforms.anomalies import anomalies
from tests.kgctl.pipelines.incidents.record import BEGIN_S, END_S

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.timeout(300)

RECORDED = Path(__file__).with_name("recorded")
BUCKET_MS = 5_000


def begin_s() -> int:
    return int((RECORDED / "incident-begin").read_text())


def test_recorded_incidents_are_found_and_nothing_else(spark: SparkSession) -> None:
    lag, commits, rebalances = (table_of(spark, table) for table in (LAG, COMMIT_RATES, REBALANCES))
    begin, end = span()
    observed = expected.observed(lag, commits, rebalances, begin, end, BUCKET_MS).persist()
    rows = expected.expected(observed, spark.createDataFrame([], EXPECTED.ddl), BUCKET_MS).persist()
    no_history, none_before = (spark.createDataFrame([], table.ddl) for table in (EXPECTED, ANOMALIES))
    found = anomalies(rows, no_history, none_before, end).collect()
    rows.unpersist()
    observed.unpersist()
    # Seconds from the begin of the incidents to the first unusual bucket, and to when it was certain.
    shown = {(row.group, row.metric, row.event): (since_begin(row.since), since_begin(row.at)) for row in found}
    assert shown == {
        ("stuck", "commit rate", "started"): (3, 18),
        ("stuck", "commit rate", "ended"): (3, 118),
        ("stuck", "lag", "started"): (48, 63),
        ("stuck", "lag", "ended"): (48, 123),
        ("slow", "lag", "started"): (48, 63),
        ("storm", "rebalances", "started"): (-2, 13),
        ("storm", "rebalances", "ended"): (-2, 118),
    }
    (reason,) = [row.reason for row in found if (row.group, row.metric, row.event) == ("stuck", "commit rate", "ended")]
    assert reason == "back to 5.00 commits per second after 100 s; worst: 0.00; usual in the time before: 5.00 to 5.00"


def table_of(spark: SparkSession, table: Any) -> DataFrame:
    files = sorted(RECORDED.glob(f"{table.name}-*.parquet"))
    return spark.read.schema(table.ddl).parquet(*map(str, files))


def span() -> tuple[int, int]:
    """Whole buckets from the first point of f_lag to the end of the consumers."""
    (file,) = RECORDED.glob("f_lag-*.parquet")
    first = round(min(pyarrow.parquet.read_table(file)["at"].to_pylist()).timestamp() * 1000)
    last = 1000 * (begin_s() + END_S - BEGIN_S)
    return first - first % BUCKET_MS, last - last % BUCKET_MS


def since_begin(moment: datetime) -> float:
    return moment.replace(tzinfo=UTC).timestamp() - begin_s()
