"""lag in the shared Spark session, when the run before was killed between its two tables."""

from __future__ import annotations

import shutil
import threading
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from broker.local import LocalBroker
from kgctl.pipelines.jobs.context import RunContext
from kgctl.pipelines.jobs.loop import run_jobs
from kgctl.pipelines.schemas.sources import OFFSETS_TOPIC
from kgctl.pipelines.settings import RunSettings
from tests.harness.commandline import Kgctl, fill
from tests.kgctl.pipelines.runs import add_commits, rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.cluster
def test_a_point_whose_log_ends_are_written_already_is_not_written_again(spark: SparkSession, tmp_path: Path) -> None:
    with LocalBroker() as broker:
        kgctl = Kgctl(broker.bootstrap_servers)
        assert kgctl("topics", "create", "orders").exit_code == 0
        fill(kgctl, "orders", [100])
        out = tmp_path / "facts"
        settings = RunSettings(("decode", "lag"), str(kgctl.bootstrap), str(out), step_s=1)
        run = RunContext(spark, settings, frozenset({OFFSETS_TOPIC}), "cluster", lambda _: None, threading.Event())
        add_commits(kgctl, range(1, 3))
        run_jobs(run)
        shutil.copytree(out / "f_lag", tmp_path / "before")
        add_commits(kgctl, range(3, 5))
        run_jobs(run)
        whole = by_point(out)
        shutil.rmtree(out / "f_lag")
        shutil.move(tmp_path / "before", out / "f_lag")
        run_jobs(run)
    ends = Counter((row["topic"], row["part"], row["at"]) for row in rows(out, "log_ends"))
    assert set(ends.values()) == {1}
    found = by_point(out)
    assert whole.items() <= found.items()
    assert {at for _, _, at in ends} == found.keys()


def by_point(out: Path) -> dict[object, dict[str, object]]:
    """The rows of f_lag, all of one partition of one group."""
    found = {row["at"]: row for row in rows(out, "f_lag")}
    assert len(found) == len(rows(out, "f_lag"))
    return found
