"""Whole runs as users start them: a broker with groups, `kgctl pipeline run`, and the tables that result."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.local import LocalBroker
from kgctl.pipelines.catalog import JOBS as CATALOG
from kgctl.pipelines.jobs.checkpoints import CLUSTER
from kgctl.pipelines.spark import fast_start
from kgctl.pipelines.tables.formats import open_table
from kgctl.pipelines.tables.manifest import held_by_one_run
from tests.harness.commandline import Kgctl, fill, member_of
from tests.kgctl.pipelines.cluster.families import await_end, below
from tests.kgctl.pipelines.runs import KGCTL, rows, run

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

JOBS = ("decode", "lag", "evaluate", "rebalances")
PATIENCE_S = 240
# A group is STOPPED only if it had lag 100 s ago as well.
AGO_MS = 600_000

Line = dict[str, Any]


@pytest.fixture(scope="module")
def kgctl() -> Iterator[Kgctl]:
    """A broker with a group that lags, one that does not, and three rebalances."""
    with LocalBroker({"group.initial.rebalance.delay.ms": 0}) as broker:
        kgctl = Kgctl(broker.bootstrap_servers)
        assert kgctl("topics", "create", "orders", "--partitions", "2").exit_code == 0
        fill(kgctl, "orders", [100, 60], time.time_ns() // 1_000_000 - AGO_MS)
        with member_of(kgctl, "readers", {"orders": [0, 1]}), member_of(kgctl, "others", {"orders": [1]}):
            pass
        kgctl.commit("readers", "orders", p0=40, p1=60)
        kgctl.commit("others", "orders", p1=60)
        yield kgctl


@pytest.fixture(scope="module")
def out(kgctl: Kgctl, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a first run of all jobs wrote, with the report; a group is worse than it allows. Spark starts the default way."""
    folder = tmp_path_factory.mktemp("pipelines") / "out"
    assert kgctl("topics", "create", "verdicts").exit_code == 0
    sinks = (
        "--sink",
        "kafka:verdicts",
        "--sink",
        f"prometheus:{folder.parent / 'groups.prom'}",
        "--fail-on",
        "stalled",
    )
    environment = {name: value for name, value in os.environ.items() if name != fast_start.VARIABLE}
    done = run(
        kgctl, folder, *JOBS, "--once", "--step", "1", "--report", "--json", "--timings", *sinks, env=environment
    )
    assert done.returncode == 3, done.stderr
    assert done.stderr == "Error: 1 group is STALLED or worse: readers STOPPED (1 of 2 partitions, lag 60)\n"
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    _check_timings([line for line in lines if line["kind"] == "timing"])
    assert [line["job"] for line in lines if line["kind"] == "done"] == [*JOBS, "sinks", "sinks", "report"]
    return folder


def _check_timings(timings: list[Line]) -> None:
    """Each phase once, in the order in which they end; each stream has a query and batches, each job its whole."""
    assert [one["phase"] for one in timings if "job" not in one] == [
        "process",
        "cluster",
        "java",
        "jvm",
        "session",
        "end",
    ]
    assert [one["job"] for one in timings if one["phase"] == "job"] == list(JOBS)
    assert [one["job"] for one in timings if one["phase"] == "query"] == ["decode", "rebalances"]
    batches = [one for one in timings if one["phase"] == "batch"]
    assert {one["job"] for one in batches} == {"decode", "rebalances"}
    assert all(one["parts"]["addBatch"] <= one["seconds"] for one in batches)
    whole = {one["job"]: one["seconds"] for one in timings if one["phase"] == "job"}
    assert all(one["seconds"] <= whole[one["job"]] for one in timings if one["phase"] in ("query", "batch"))


def test_every_table_says_from_which_cluster_it_is(out: Path, kgctl: Kgctl) -> None:
    written = {table.name: open_table(out / table.name).state() for name in JOBS for table in CATALOG[name].writes}
    assert {name for name, state in written.items() if not state.committed} == {"quarantine"}
    with kgctl.admin() as admin:
        ids = {state.notes.get(CLUSTER) for state in written.values() if state.committed}
        assert ids == {admin.cluster_id()}


def test_commits_are_those_that_were_acknowledged(out: Path) -> None:
    assert {(row["group"], row["topic"], row["part"], row["committed"]) for row in rows(out, "commits")} == {
        ("readers", "orders", 0, 40),
        ("readers", "orders", 1, 60),
        ("others", "orders", 1, 60),
    }
    assert rows(out, "quarantine") == []


def test_the_newest_lag_is_the_one_that_describe_shows(out: Path, kgctl: Kgctl) -> None:
    lag = rows(out, "f_lag")
    newest = max(row["at"] for row in lag)
    described = kgctl.rows("groups", "describe", "readers", "others")
    assert {(row["group"], row["part"]): row["lag"] for row in lag if row["at"] == newest} == {
        (row["group"], row["partition"]): row["lag"] for row in described
    }
    behind = [row for row in lag if row["lag"] and row["at"] == newest]
    assert [(row["group"], row["lag"]) for row in behind] == [("readers", 60)]
    assert behind[0]["lag_ms"] > 0


def test_every_partition_of_a_group_has_a_health(out: Path) -> None:
    health = {(row["group"], row["part"]): row["status"] for row in rows(out, "health")}
    assert health.keys() == {("readers", 0), ("readers", 1), ("others", 1)}
    assert health["readers", 1] == health["others", 1] == "OK"


def test_the_sinks_have_the_verdict_about_every_group(out: Path, kgctl: Kgctl) -> None:
    consumed = kgctl("consume", "verdicts", "--from-beginning", "--until-end", "--json")
    records = [json.loads(line) for line in consumed.stdout.splitlines()]
    assert {(one["key"], json.loads(one["value"])["status"]) for one in records} == {
        ("readers", "STOPPED"),
        ("others", "OK"),
    }
    assert 'group="readers",status="STOPPED"} 1.0' in (out.parent / "groups.prom").read_text()


def test_rebalances_are_those_of_the_history(out: Path, kgctl: Kgctl) -> None:
    found = {(row["group"], row["generation"], row["cause"], row["members"]) for row in rows(out, "f_rebalance")}
    history = [row for group in ("readers", "others") for row in kgctl.rows("groups", "history", group)]
    assert found == {(row["group"], row["generation"], row["cause"], row["members"]) for row in history}
    assert all(row["duration_ms"] is not None for row in rows(out, "f_rebalance") if row["members"])


def test_the_report_shows_the_groups(out: Path) -> None:
    page = (out / "report.html").read_text()
    assert "readers" in page
    assert "others" in page


def test_the_positions_of_the_jobs_are_visible_as_groups(out: Path, kgctl: Kgctl) -> None:
    described = kgctl.rows("groups", "describe", "spark-decode", "spark-rebalances")
    assert {row["topic"] for row in described} == {"__consumer_offsets", "__kgctl_group_events"}
    assert all(row["current_offset"] is not None for row in described)


@pytest.mark.cluster
def test_a_second_run_adds_what_is_new_and_doubles_nothing(out: Path, kgctl: Kgctl) -> None:
    before = rows(out, "commits")
    kgctl.commit("readers", "orders", p0=90)
    done = run(kgctl, out, *JOBS, "--once", "--step", "1")
    assert done.returncode == 0, done.stderr
    after = rows(out, "commits")
    places = [(row["log_partition"], row["log_offset"]) for row in after]
    assert len(set(places)) == len(places)
    mine = [row for row in after if not row["group"].startswith("spark-")]
    assert len(mine) == len([row for row in before if not row["group"].startswith("spark-")]) + 1
    points = [(row["group"], row["topic"], row["part"], row["at"]) for row in rows(out, "f_lag")]
    assert len(set(points)) == len(points)
    assert len({row["at"] for row in rows(out, "health")}) == 2
    rebalances = [(row["group"], row["generation"], row["ended"]) for row in rows(out, "f_rebalance")]
    assert len(set(rebalances)) == len(rebalances)


@pytest.mark.parametrize("job", ["decode", "evaluate"])
def test_tables_of_another_cluster_are_refused(out: Path, job: str) -> None:
    with LocalBroker() as broker:
        kgctl = Kgctl(broker.bootstrap_servers)
        assert kgctl("topics", "create", "t").exit_code == 0
        fill(kgctl, "t", [1])
        kgctl.commit("g", "t", p0=1)
        done = run(kgctl, out, job, "--once")
    assert done.returncode == 6
    assert "were read from another cluster" in done.stderr
    assert "Spark" not in done.stderr


def test_tables_whose_checkpoint_is_gone_are_not_read_into_twice(out: Path, kgctl: Kgctl, tmp_path: Path) -> None:
    done = run(kgctl, out, "decode", "--once", "--checkpoint", str(tmp_path / "new"))
    assert done.returncode == 6
    assert "reading everything again would double them" in done.stderr


def test_a_run_is_refused_while_another_one_writes_to_the_folder(out: Path, kgctl: Kgctl) -> None:
    with held_by_one_run(out):
        done = run(kgctl, out, "lag", "--once")
    assert done.returncode == 6
    assert f"process {os.getpid()} runs jobs in this folder" in done.stderr
    assert "Spark" not in done.stderr


def test_a_second_signal_ends_a_run_at_once_and_is_no_failure(kgctl: Kgctl, tmp_path: Path) -> None:
    with running(kgctl, tmp_path, "decode", "--follow", "--json") as child:
        await_line(lines_of(child), lambda line: line["kind"] == "starting")
        child.send_signal(signal.SIGINT)
        child.send_signal(signal.SIGTERM)
        assert child.wait(PATIENCE_S) == 130


def test_a_following_run_continues_the_tables_and_ends_at_ctrl_c(out: Path, kgctl: Kgctl) -> None:
    before = [row for row in rows(out, "commits") if not row["group"].startswith("spark-")]
    newest = max(row["at"] for row in rows(out, "f_lag"))
    kgctl.commit("readers", "orders", p0=90)
    arguments = ("decode", "lag", "--follow", "--trigger", "0.5", "--step", "1", "--json")
    with running(kgctl, out, *arguments) as child:
        lines = lines_of(child)
        await_line(lines, lambda line: line["kind"] == "done" and line["job"] == "lag")
        kgctl.commit("late", "orders", p0=77)
        await_line(lines, lambda _: any(row["group"] == "late" for row in rows(out, "commits")))
        child.send_signal(signal.SIGINT)
        assert child.wait(PATIENCE_S) == 130
    after = rows(out, "commits")
    places = [(row["log_partition"], row["log_offset"]) for row in after]
    assert len(set(places)) == len(places)
    mine = [row for row in after if not row["group"].startswith("spark-")]
    assert len(mine) == len(before) + 2
    points = [(row["group"], row["topic"], row["part"], row["at"]) for row in rows(out, "f_lag")]
    assert len(set(points)) == len(points)
    assert any(at > newest for *_, at in points)


@pytest.mark.cluster
def test_a_killed_run_leaves_no_process_and_the_next_one_continues(kgctl: Kgctl, tmp_path: Path) -> None:
    with running(kgctl, tmp_path, "decode", "--follow", "--trigger", "0.2", "--json") as child:
        await_line(lines_of(child), lambda line: line["kind"] == "progress")
        descendants = below(child.pid)
        assert len(descendants) >= 2
        child.kill()
        child.wait(PATIENCE_S)
        for pid in descendants:
            await_end(pid)
    done = run(kgctl, tmp_path, "decode", "--once")
    assert done.returncode == 0, done.stderr
    places = [(row["log_partition"], row["log_offset"]) for row in rows(tmp_path, "commits")]
    assert len(set(places)) == len(places)


def test_an_unreachable_cluster_is_reported_before_spark_starts(tmp_path: Path) -> None:
    done = run(Kgctl("127.0.0.1:1"), tmp_path, "decode", "--once", "--timeout", "5")
    assert done.returncode == 7
    assert "connection refused" in done.stderr
    assert "Spark" not in done.stderr


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        (
            "spark.driver.memory=lots",
            "Spark's JVM did not start and exited with 1: Invalid maximum heap size: -Xmxlots",
        ),
        ("spark.memory.fraction=7", "spark.memory.fraction should be between 0 and 1 (was '7.0')."),
    ],
)
def test_a_setting_that_spark_refuses_is_one_line(kgctl: Kgctl, tmp_path: Path, setting: str, reason: str) -> None:
    done = run(kgctl, tmp_path, "decode", "--once", "--conf", setting)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-2:] == ["starting Spark, which takes a few seconds", f"Error: {reason}"]


@contextlib.contextmanager
def running(kgctl: Kgctl, out: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [*KGCTL, "pipeline", "run", *arguments, "--quick", "--out", str(out), "--bootstrap", str(kgctl.bootstrap)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as child:
        try:
            yield child
        finally:
            child.kill()


def lines_of(child: subprocess.Popen[str]) -> Iterator[Line]:
    assert child.stdout is not None
    watchdog = threading.Timer(PATIENCE_S, child.kill)
    watchdog.start()
    try:
        for line in child.stdout:
            yield json.loads(line)
    finally:
        watchdog.cancel()


def await_line(lines: Iterator[Line], holds: Callable[[Line], bool]) -> None:
    assert any(holds(line) for line in lines), "the run ended before that"
