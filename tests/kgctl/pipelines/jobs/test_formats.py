"""Jobs that write tables in the formats of Delta Lake and Iceberg, and continue them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from broker.local import LocalBroker
from kgctl.pipelines import views
from kgctl.pipelines.jobs.context import RunContext
from kgctl.pipelines.jobs.loop import run_jobs
from kgctl.pipelines.schemas.sources import EVENTS_TOPIC, OFFSETS_TOPIC
from kgctl.pipelines.settings import RunSettings
from kgctl.pipelines.tables.formats import DELTA, ICEBERG, set_format
from kgctl.pipelines.views.query import run_query
from tests.harness.commandline import Kgctl, fill
from tests.kgctl.pipelines.runs import add_commits

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COMMITS = 20


@pytest.fixture(scope="module")
def kgctl() -> Iterator[Kgctl]:
    with LocalBroker() as broker:
        kgctl = Kgctl(broker.bootstrap_servers)
        assert kgctl("topics", "create", "orders").exit_code == 0
        fill(kgctl, "orders", [100])
        add_commits(kgctl, range(1, COMMITS + 1))
        yield kgctl


@pytest.mark.cluster
@pytest.mark.parametrize("table_format", [DELTA, ICEBERG])
def test_jobs_write_and_continue_tables_of_each_format(
    spark: SparkSession, kgctl: Kgctl, tmp_path: Path, table_format: str
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    set_format(out, table_format)
    settings = RunSettings(("decode", "lag"), str(kgctl.bootstrap), str(out), table_format=table_format, step_s=60)
    run = RunContext(
        spark, settings, frozenset({OFFSETS_TOPIC, EVENTS_TOPIC}), "cluster", lambda _: None, threading.Event()
    )
    sql = "select count(*) as n, count(distinct log_offset) as once, max(committed) as last from commits where topic = 'orders'"
    run_jobs(run)
    before = run_query(out, sql).rows[0]
    assert before.n == before.once >= COMMITS
    add_commits(kgctl, range(before.last + 1, before.last + COMMITS + 1))
    run_jobs(run)
    after = run_query(out, sql).rows[0]
    assert (after.n, after.once, after.last) == (before.n + COMMITS, before.n + COMMITS, before.last + COMMITS)
    points = run_query(out, 'select count(*) as n, count(distinct "at") as once from f_lag').rows[0]
    assert points.n == points.once > 0
    views.register(spark, out)
    assert spark.table("lag_now").first()["committed"] == after.last
