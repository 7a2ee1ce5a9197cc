"""retention on a broker: what is written equals what the records say, counted without Spark."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from broker.local import LocalBroker
from broker.protocol.record_batch import Record, build_batch
from kgctl.client.net.errors import Precondition
from kgctl.pipelines.catalog import JOBS
from kgctl.pipelines.jobs.checkpoints import check_inputs
from kgctl.pipelines.jobs.context import RunContext
from kgctl.pipelines.jobs.loop import run_jobs
from kgctl.pipelines.progress import Progress
from kgctl.pipelines.settings import RunSettings
from kgctl.pipelines.transforms.retention import AGES_S, DAY_MS
from tests.harness.commandline import Kgctl, append
from tests.kgctl.pipelines.runs import rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOUR_MS = 3_600_000
# Ages of the records of `orders`, partition by partition, in ms and the order of the log. The last partition is empty.
AGES_MS = (
    tuple(range(40 * DAY_MS, HOUR_MS // 2, -7 * HOUR_MS)),
    (2 * DAY_MS + HOUR_MS, 2 * DAY_MS, 5 * HOUR_MS, HOUR_MS // 4),
    (),
)
KEEP_MS, KEEP_BYTES = 3 * DAY_MS, 100_000


@pytest.fixture(scope="module")
def kgctl() -> Iterator[Kgctl]:
    with LocalBroker({"log.retention.check.interval.ms": 10_000_000}) as broker:
        kgctl = Kgctl(broker.bootstrap_servers)
        limits = ["--config", f"retention.ms={KEEP_MS}", "--config", f"retention.bytes={KEEP_BYTES}"]
        assert kgctl("topics", "create", "orders", "--partitions", len(AGES_MS), *limits).exit_code == 0
        assert kgctl("topics", "create", "unlimited", "--config", "retention.ms=-1").exit_code == 0
        now_ms = time.time_ns() // 1_000_000
        with kgctl.admin() as admin:
            for part, ages in enumerate(AGES_MS):
                if ages:
                    records = [Record(n, now_ms - age, None, b"x" * 100) for n, age in enumerate(ages)]
                    append(admin, "orders", part, build_batch(records))
            append(admin, "unlimited", 0, build_batch([Record(0, now_ms - 50 * DAY_MS, b"k", b"v")]))
        yield kgctl


@pytest.fixture(scope="module")
def out(spark: SparkSession, kgctl: Kgctl, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two measurements; between them, the log of orders-0 lost its first five records."""
    folder = tmp_path_factory.mktemp("facts")
    run_jobs(run_of(spark, kgctl, folder, topics="orders|unlimited"))
    done = kgctl("topics", "delete-records", "orders:0:5", "--execute")
    assert done.exit_code == 0, done.output
    run_jobs(run_of(spark, kgctl, folder, topics="orders|unlimited"))
    return folder


def test_records_by_age_are_those_of_the_log(out: Path) -> None:
    first = min(row["at"] for row in rows(out, "log_ages"))
    found = {
        (row["part"], row["age_from_s"]): (row["first_offset"], row["end_offset"], row["records"])
        for row in rows(out, "log_ages")
        if row["topic"] == "orders" and row["at"] == first
    }
    expected = {}
    for part, ages in enumerate(AGES_MS):
        for young, old in zip(AGES_S, (*AGES_S[1:], None), strict=True):
            # The records were made moments before the measurement; no age is that close to a limit.
            offsets = [n for n, age in enumerate(ages) if young * 1000 <= age and (old is None or age < old * 1000)]
            if offsets:
                expected[part, young] = (offsets[0], offsets[-1] + 1, len(offsets))
    assert found == expected


def test_bytes_by_age_add_up_to_the_size_of_the_log(out: Path) -> None:
    newest = measured(out)
    last = newest["orders", 1]["at"]
    by_age = [row for row in rows(out, "log_ages") if (row["topic"], row["part"], row["at"]) == ("orders", 1, last)]
    assert sum(row["bytes"] for row in by_age) == pytest.approx(newest["orders", 1]["bytes"], abs=len(by_age))


def test_what_retention_will_delete(out: Path) -> None:
    row = measured(out)["orders", 0]
    ages = AGES_MS[0]
    assert (row["cleanup_policy"], row["retention_ms"], row["retention_bytes"]) == ("delete", KEEP_MS, KEEP_BYTES)
    assert (row["log_start"], row["log_end"], row["records"]) == (5, len(ages), len(ages) - 5)
    assert row["expired_records"] == sum(age >= KEEP_MS for age in ages[5:])
    assert row["day_records"] == sum(age >= KEEP_MS - DAY_MS for age in ages[5:])
    assert row["expired_bytes"] == pytest.approx(row["bytes"] * row["expired_records"] / row["records"], abs=1)
    assert seconds(row["next_expiry"] - row["oldest"]) == KEEP_MS / 1000
    assert seconds(row["at"] - row["oldest"]) == pytest.approx(ages[5] / 1000, abs=120)
    assert row["excess_bytes"] == 0


def test_growth_is_that_of_the_last_day(out: Path) -> None:
    row = measured(out)["orders", 0]
    assert row["growth_records"] == sum(age < DAY_MS for age in AGES_MS[0])
    assert row["growth_bytes"] == pytest.approx(row["bytes"] / row["records"] * row["growth_records"])
    # Three days of it are far less than retention.bytes allows.
    assert row["expected_bytes"] == pytest.approx(3 * row["growth_bytes"])
    assert row["size_limit_at"] is None


def test_moves_of_the_log_start_are_measured_from_row_to_row(out: Path) -> None:
    measurements = sorted(
        (row for row in rows(out, "f_retention") if (row["topic"], row["part"]) == ("orders", 0)),
        key=lambda row: row["at"],
    )
    assert [row["log_start_moved"] for row in measurements] == [None, 5]
    days = seconds(measurements[1]["at"] - measurements[0]["at"]) / 86_400
    assert measurements[1]["deleted_records"] == pytest.approx(5 / days)


def test_an_empty_log_and_one_without_limits(out: Path) -> None:
    newest = measured(out)
    empty, unlimited = newest["orders", 2], newest["unlimited", 0]
    assert (empty["records"], empty["oldest"], empty["growth_records"], empty["next_expiry"]) == (0, None, None, None)
    of_retention = (
        "retention_ms",
        "expired_records",
        "day_records",
        "day_bytes",
        "next_expiry",
        "expected_bytes",
        "size_limit_at",
    )
    assert [unlimited[name] for name in of_retention] == [None] * len(of_retention)


def test_topics_that_do_not_match_are_left_out(out: Path) -> None:
    assert {row["topic"] for row in rows(out, "f_retention")} == {"orders", "unlimited"}


def test_a_pattern_without_topics_fails_before_spark_starts(kgctl: Kgctl, tmp_path: Path) -> None:
    failed = kgctl("pipeline", "run", "retention", "--topics", "order", "--out", tmp_path)
    assert (failed.exit_code, failed.stderr) == (5, "Error: no topic matches --topics 'order'\n")


def test_measurements_of_another_cluster_are_not_mixed(out: Path) -> None:
    settings = RunSettings(("retention",), "127.0.0.1:1", str(out))
    check_inputs(JOBS["retention"], "cluster", settings)
    with pytest.raises(Precondition, match="were read from another cluster"):
        check_inputs(JOBS["retention"], "other", settings)


def measured(out: Path) -> dict[tuple[str, int], dict[str, Any]]:
    """The newest measurement of each partition."""
    return {(row["topic"], row["part"]): row for row in sorted(rows(out, "f_retention"), key=lambda row: row["at"])}


def seconds(time: Any) -> float:
    return float(time.total_seconds())


def run_of(spark: SparkSession, kgctl: Kgctl, out: Path, topics: str) -> RunContext:
    settings = RunSettings(("retention",), str(kgctl.bootstrap), str(out), topics=topics)
    return RunContext(spark, settings, frozenset(), "cluster", ignore, threading.Event())


def ignore(_: Progress) -> None:
    pass
