"""The jobs in the shared Spark session: what a run with --follow reports, and how it ends."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from broker.local import LocalBroker
from broker.protocol.offsets_topic import partition_for
from kgctl.pipelines.jobs import loop
from kgctl.pipelines.jobs.context import RunContext
from kgctl.pipelines.jobs.loop import is_echo, run_jobs
from kgctl.pipelines.progress import Progress
from kgctl.pipelines.schemas.sources import EVENTS_TOPIC, OFFSETS_TOPIC
from kgctl.pipelines.settings import RunSettings
from kgctl.pipelines.spark.failures import Interrupted
from kgctl.pipelines.tables import merge_plans
from kgctl.pipelines.tables.manifest import TableFolder
from tests.harness.commandline import Kgctl, fill
from tests.kgctl.pipelines.runs import add_commits, rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COMMITS = 60
PATIENCE_S = 120


@pytest.fixture(scope="module")
def kgctl() -> Iterator[Kgctl]:
    """A broker with one group that has committed 1, 2, 3 and so on."""
    with LocalBroker() as broker:
        kgctl = Kgctl(broker.bootstrap_servers)
        assert kgctl("topics", "create", "orders").exit_code == 0
        fill(kgctl, "orders", [100])
        add_commits(kgctl, range(1, COMMITS + 1))
        yield kgctl


@pytest.mark.cluster
def test_a_following_run_computes_no_lag_before_it_has_read_all_commits(
    spark: SparkSession, kgctl: Kgctl, tmp_path: Path
) -> None:
    follow(run_of(spark, kgctl, tmp_path, "decode", "lag", until=has_written_lag))
    newest = max(rows(tmp_path, "f_lag"), key=lambda row: row["at"])
    assert newest["committed"] == COMMITS


@pytest.mark.cluster
def test_a_following_run_computes_lag_although_a_stream_has_nothing_to_read(
    spark: SparkSession, kgctl: Kgctl, tmp_path: Path
) -> None:
    run_jobs(run_of(spark, kgctl, tmp_path, "decode", once=True))
    follow(run_of(spark, kgctl, tmp_path, "lag", "rebalances", until=has_written_lag))
    assert rows(tmp_path, "f_lag")


@pytest.mark.cluster
def test_verdicts_are_delivered_after_each_round_of_a_following_run(
    spark: SparkSession, kgctl: Kgctl, tmp_path: Path
) -> None:
    evaluations: list[int] = []

    def after_round() -> None:
        evaluations.append(len({row["at"] for row in rows(tmp_path, "health")}))
        if len(evaluations) == 2:
            run.stop.set()

    run = replace(run_of(spark, kgctl, tmp_path, "decode", "evaluate"), after_round=after_round)
    follow(run)
    assert evaluations == [1, 2]


@pytest.mark.cluster
def test_a_following_run_examines_whole_topics_less_often(spark: SparkSession, kgctl: Kgctl, tmp_path: Path) -> None:
    rounds: list[Progress] = []

    def has_ended_twice(progress: Progress) -> bool:
        if progress.kind == "done" and progress.job == "producers":
            rounds.append(progress)
        return len(rounds) == 2

    follow(run_of(spark, kgctl, tmp_path, "retention", "producers", until=has_ended_twice))
    assert len(rounds) == 2
    assert len({row["at"] for row in rows(tmp_path, "f_retention")}) == 1


@pytest.mark.cluster
def test_a_batch_job_is_cancelled_when_the_user_ends_the_run(spark: SparkSession, kgctl: Kgctl, tmp_path: Path) -> None:
    run_jobs(run_of(spark, kgctl, tmp_path, "decode", once=True))
    with pytest.raises(Interrupted):
        run_jobs(
            run_of(spark, kgctl, tmp_path, "lag", "evaluate", once=True, until=lambda progress: progress.kind == "job")
        )
    assert rows(tmp_path, "health") == []


@pytest.mark.cluster
def test_a_following_run_merges_small_files_between_its_batches(
    spark: SparkSession, kgctl: Kgctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "MERGE_EVERY_S", 0.0)
    monkeypatch.setattr(merge_plans, "TIER_FILES", 2)

    def is_merged(_: Progress) -> bool:
        fold = TableFolder(tmp_path / "commits").state().fold
        return len(fold.known) >= 3 and bool(rows(tmp_path, "f_lag"))

    # Of 20 records at most, so there are several.
    follow(run_of(spark, kgctl, tmp_path, "decode", "lag", until=is_merged))
    found = [row["log_offset"] for row in rows(tmp_path, "commits") if row["topic"] == "orders"]
    assert len(found) == len(set(found)) == COMMITS
    state = TableFolder(tmp_path / "commits").state()
    assert state.fold.merged
    # A new run continues after the merge.
    run_jobs(run_of(spark, kgctl, tmp_path, "decode", "lag", once=True))
    assert [row["log_offset"] for row in rows(tmp_path, "commits") if row["topic"] == "orders"].count(found[0]) == 1


def test_positions_that_the_streams_published_are_not_published_again() -> None:
    own, other = partition_for("spark-decode"), partition_for("spark-rebalances")
    assert is_echo({OFFSETS_TOPIC: {own: 7}}, 50)
    assert is_echo({OFFSETS_TOPIC: {own: 7, other: 9}}, 50)
    assert not is_echo({OFFSETS_TOPIC: {own: 7, (own + 1) % 50: 1}}, 50)
    assert not is_echo({EVENTS_TOPIC: {0: 7}}, 0)


def has_written_lag(progress: Progress) -> bool:
    return progress.kind == "done" and bool(progress.rows)


def follow(run: RunContext) -> None:
    watchdog = threading.Timer(PATIENCE_S, run.stop.set)
    watchdog.start()
    with pytest.raises(Interrupted):
        run_jobs(run)
    watchdog.cancel()


def run_of(
    spark: SparkSession,
    kgctl: Kgctl,
    out: Path,
    *jobs: str,
    once: bool = False,
    until: Callable[[Progress], bool] = lambda _: False,
) -> RunContext:
    """A run that is ended by the first progress for which `until` holds."""
    stop = threading.Event()
    settings = RunSettings(
        jobs, str(kgctl.bootstrap), str(out), follow=not once, trigger_s=0.2, step_s=1, max_offsets_per_trigger=20
    )

    def emit(progress: Progress) -> None:
        if until(progress):
            stop.set()

    return RunContext(spark, settings, frozenset({OFFSETS_TOPIC, EVENTS_TOPIC}), "cluster", emit, stop)
