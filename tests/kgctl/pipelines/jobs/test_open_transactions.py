"""Commits in a transaction that is open while jobs run: no row is written before they can be read, and none is lost."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from kgctl.pipelines.jobs.checkpoints import read_until
from kgctl.pipelines.jobs.context import RunContext
from kgctl.pipelines.jobs.loop import run_jobs
from kgctl.pipelines.jobs.readable import LONGEST_MS, Hidden, complete_until
from kgctl.pipelines.progress import Progress
from kgctl.pipelines.schemas.sources import OFFSETS_TOPIC
from kgctl.pipelines.settings import RunSettings
from kgctl.pipelines.spark.failures import Interrupted
from tests.harness import clusters
from tests.harness.commandline import Kgctl, fill
from tests.harness.reference_kafka import Unavailable
from tests.harness.running import until
from tests.kgctl.pipelines.runs import add_commits, rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.timeout(300), pytest.mark.cluster]

PLAIN, IN_TRANSACTION = 5, 50
PATIENCE_S = 200


@pytest.fixture(params=["kgctl", pytest.param("kafka", marks=pytest.mark.reference)])
def kgctl(request: pytest.FixtureRequest) -> Iterator[Kgctl]:
    """Group `readers` has committed 1 to PLAIN."""
    try:
        started = clusters.start(request.param)
    except Unavailable as reason:
        pytest.skip(f"no real Kafka: {reason}")
    with started as cluster:
        kgctl = Kgctl(cluster.bootstrap_servers)
        assert kgctl("topics", "create", "orders").exit_code == 0
        fill(kgctl, "orders", [100])
        add_commits(kgctl, range(1, PLAIN + 1))
        yield kgctl


def test_commits_in_a_transaction_that_a_run_met_open_are_in_the_tables_of_the_next(
    spark: SparkSession, kgctl: Kgctl, tmp_path: Path
) -> None:
    end = begin(kgctl)
    notes = run_once(spark, kgctl, tmp_path)
    held = until_of(tmp_path)
    end()
    # Kafka answers before it has written the markers.
    until(lambda: kgctl.rows("transactions", "describe", "readers")[0]["state"] == "CompleteCommit", 30)
    run_once(spark, kgctl, tmp_path)
    transactional = next(row for row in rows(tmp_path, "commits") if row["committed"] == IN_TRANSACTION)
    assert held < transactional["commit_ts"].timestamp() * 1000
    assert until_of(tmp_path) > transactional["commit_ts"].timestamp() * 1000
    assert sum(row["commits"] for row in commit_rates(tmp_path)) == PLAIN + 1
    for row in rows(tmp_path, "f_lag"):
        assert row["committed"] == as_of(tmp_path, row["at"])
    assert all("a transaction is open since" in note for note in notes)


def test_a_group_that_commits_behind_an_open_transaction_is_judged_by_its_commits_before(
    spark: SparkSession, kgctl: Kgctl, tmp_path: Path
) -> None:
    committed = time.time()
    # Results end a second before the transaction.
    until(lambda: time.time() > committed + 1.5, 10)
    end = begin(kgctl)
    add_commits(kgctl, range(PLAIN + 1, PLAIN + 21))
    run_jobs(run_of(spark, kgctl, tmp_path, lambda _: False, jobs=("decode", "evaluate")))
    (row,) = rows(tmp_path, "health")
    assert (row["group"], row["complete"]) == ("readers", PLAIN / 10)
    end()


def test_a_following_run_writes_no_window_before_the_transaction_ends(
    spark: SparkSession, kgctl: Kgctl, tmp_path: Path
) -> None:
    end, opened = begin(kgctl), time.monotonic()
    ended: list[float] = []

    def is_counted(progress: Progress) -> bool:
        print(
            time.monotonic() - opened,
            progress,
            (tmp_path / "_checkpoints/decode/kgctl-read-until").read_text()
            if (tmp_path / "_checkpoints/decode/kgctl-read-until").exists()
            else None,
        )
        if progress.kind != "done" or progress.job != "commit_rates":
            return False
        # Windows are a second long: those of the transaction's commit would be written by now.
        if not ended and time.monotonic() > opened + 4:
            end()
            ended.append(time.monotonic())
        return sum(row["commits"] for row in commit_rates(tmp_path)) >= PLAIN + 1 or (
            bool(ended) and time.monotonic() > ended[0] + 60
        )

    run = run_of(spark, kgctl, tmp_path, is_counted, follow=True)
    watchdog = threading.Timer(PATIENCE_S, run.stop.set)
    watchdog.start()
    with pytest.raises(Interrupted):
        run_jobs(run)
    watchdog.cancel()
    assert ended
    assert sum(row["commits"] for row in commit_rates(tmp_path)) == PLAIN + 1


def test_a_transaction_holds_results_back_for_a_quarter_of_an_hour_at_most() -> None:
    now_ms = 10_000_000
    young, old, unknown = (Hidden("x", ms) for ms in (now_ms - 60_000, now_ms - LONGEST_MS - 1, None))
    assert complete_until([], now_ms) == now_ms
    # A second for the time between a commit and its record.
    assert complete_until([young], now_ms) == now_ms - 61_000
    assert complete_until([old, unknown], now_ms) == now_ms
    assert complete_until([old, young, unknown], now_ms) == now_ms - 61_000


def begin(kgctl: Kgctl) -> Callable[[], None]:
    """Commit IN_TRANSACTION in a transaction of the group, and return what commits the transaction."""
    consumer = Consumer({"bootstrap.servers": kgctl.bootstrap, "group.id": "readers"})
    patience_ms = 1000 * PATIENCE_S
    producer = Producer(
        {
            "bootstrap.servers": kgctl.bootstrap,
            "transactional.id": "readers",
            "transaction.timeout.ms": patience_ms,
        }
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    offsets = [TopicPartition("orders", 0, IN_TRANSACTION)]
    producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), 30)
    consumer.close()
    return lambda: producer.commit_transaction(30)


def run_once(spark: SparkSession, kgctl: Kgctl, out: Path) -> list[str]:
    """The notes of the run."""
    notes: list[str] = []

    def note(progress: Progress) -> bool:
        if progress.kind == "note":
            notes.append(progress.text)
        return False

    run_jobs(run_of(spark, kgctl, out, note))
    return notes


def run_of(
    spark: SparkSession,
    kgctl: Kgctl,
    out: Path,
    until: Callable[[Progress], bool],
    *,
    follow: bool = False,
    jobs: tuple[str, ...] = ("decode", "lag", "commit_rates"),
) -> RunContext:
    """A run that is ended by the first progress for which `until` holds."""
    stop = threading.Event()
    settings = RunSettings(jobs, str(kgctl.bootstrap), str(out), follow=follow, trigger_s=0.2, step_s=1)

    def emit(progress: Progress) -> None:
        if until(progress):
            stop.set()

    return RunContext(spark, settings, frozenset({OFFSETS_TOPIC}), "cluster", emit, stop)


def until_of(out: Path) -> int:
    found = read_until(out / "_checkpoints" / "decode")
    assert found is not None
    return found


def commit_rates(out: Path) -> list[dict[str, Any]]:
    return [row for row in rows(out, "f_commit") if row["group"] == "readers"]


def as_of(out: Path, at: datetime) -> int:
    """What the group had committed at a time, by the table of all commits."""
    own = [row for row in rows(out, "commits") if row["group"] == "readers" and row["commit_ts"] <= at]
    return int(max(own, key=lambda row: row["log_offset"])["committed"])
