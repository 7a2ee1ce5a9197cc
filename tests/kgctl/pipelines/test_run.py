"""Whole runs as a person starts them: a broker with groups, `kgctl pipeline run`, tables that anybody can read."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.local import LocalBroker
from kgctl.pipelines.tables.manifest import TableFolder, held_by_one_run
from tests.harness.commandline import Kgctl, fill, member_of
from tests.kgctl.pipelines.runs import KGCTL, rows, run

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

JOBS = ("decode", "lag", "evaluate", "rebalances")
PATIENCE_S = 120


@pytest.fixture(scope="module")
def kgctl() -> Iterator[Kgctl]:
    """A broker with a group that is behind, one that is not, and three rebalances."""
    with LocalBroker({"group.initial.rebalance.delay.ms": 0}) as broker:
        kgctl = Kgctl(broker.bootstrap_servers)
        assert kgctl("topics", "create", "orders", "--partitions", "2").exit_code == 0
        fill(kgctl, "orders", [100, 60])
        with member_of(kgctl, "readers", {"orders": [0, 1]}), member_of(kgctl, "others", {"orders": [1]}):
            pass
        kgctl.commit("readers", "orders", p0=40, p1=60)
        kgctl.commit("others", "orders", p1=60)
        yield kgctl


@pytest.fixture(scope="module")
def out(kgctl: Kgctl, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a first run of all jobs wrote, with the report."""
    folder = tmp_path_factory.mktemp("pipelines") / "out"
    done = run(kgctl, folder, *JOBS, "--once", "--step", "1", "--report", "--json")
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["job"] for line in lines if line["kind"] == "done"] == [*JOBS, "report"]
    return folder


def test_commits_are_those_that_were_acknowledged(out: Path) -> None:
    assert {(row["group"], row["topic"], row["part"], row["committed"]) for row in rows(out, "commits")} == {
        ("readers", "orders", 0, 40),
        ("readers", "orders", 1, 60),
        ("others", "orders", 1, 60),
    }
    assert rows(out, "quarantine") == []


def test_lag_now_is_what_describe_says(out: Path, kgctl: Kgctl) -> None:
    lag = rows(out, "f_lag")
    newest = max(row["at"] for row in lag)
    described = kgctl.rows("groups", "describe", "readers", "others")
    assert {(row["group"], row["part"]): row["lag"] for row in lag if row["at"] == newest} == {
        (row["group"], row["partition"]): row["lag"] for row in described
    }
    behind = [row for row in lag if row["lag"] and row["at"] == newest]
    assert [(row["group"], row["lag"]) for row in behind] == [("readers", 60)]
    assert behind[0]["lag_ms"] > 0


def test_every_partition_of_a_group_has_a_verdict(out: Path) -> None:
    verdicts = {(row["group"], row["part"]): row["status"] for row in rows(out, "health")}
    assert verdicts.keys() == {("readers", 0), ("readers", 1), ("others", 1)}
    assert verdicts["readers", 1] == verdicts["others", 1] == "OK"


def test_rebalances_are_those_of_the_history(out: Path, kgctl: Kgctl) -> None:
    found = {(row["group"], row["generation"], row["cause"], row["members"]) for row in rows(out, "f_rebalance")}
    told = [row for group in ("readers", "others") for row in kgctl.rows("groups", "history", group)]
    assert found == {(row["group"], row["generation"], row["cause"], row["members"]) for row in told}
    assert all(row["duration_ms"] is not None for row in rows(out, "f_rebalance") if row["members"])


def test_the_report_names_the_groups(out: Path) -> None:
    page = (out / "report.html").read_text()
    assert "readers" in page
    assert "others" in page
    assert list((out / "report").glob("*.png"))


def test_how_far_the_jobs_have_read_is_seen_as_groups(out: Path, kgctl: Kgctl) -> None:
    described = kgctl.rows("groups", "describe", "spark-decode", "spark-rebalances")
    assert {row["topic"] for row in described} == {"__consumer_offsets", "__kgctl_group_events"}
    # The positions are commits themselves, so a little is always to come.
    assert all(row["current_offset"] is not None for row in described)


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
    assert len(rows(out, "f_rebalance")) == len(
        {(row["group"], row["generation"], row["ended"]) for row in rows(out, "f_rebalance")}
    )


@pytest.mark.parametrize("job", ["decode", "lag", "evaluate"])
def test_tables_of_another_cluster_are_not_mixed_in(out: Path, job: str) -> None:
    with LocalBroker() as broker:
        kgctl = Kgctl(broker.bootstrap_servers)
        assert kgctl("topics", "create", "t").exit_code == 0
        fill(kgctl, "t", [1])
        kgctl.commit("g", "t", p0=1)
        done = run(kgctl, out, job, "--once")
    assert done.returncode == 6
    assert "were read from another cluster" in done.stderr
    assert "Spark" not in done.stderr


def test_tables_without_their_checkpoint_are_not_read_into_twice(out: Path, kgctl: Kgctl, tmp_path: Path) -> None:
    done = run(kgctl, out, "decode", "--once", "--checkpoint", str(tmp_path / "new"))
    assert done.returncode == 6
    assert "reading everything again would double them" in done.stderr


def test_a_second_run_at_the_same_time_is_refused(out: Path, kgctl: Kgctl) -> None:
    before = rows(out, "health")
    with TableFolder(out / "health").writing():
        done = run(kgctl, out, "evaluate", "--once")
    assert done.returncode == 6
    assert f"pid {os.getpid()} is writing to this table" in done.stderr
    assert rows(out, "health") == before


def test_a_second_run_is_refused_also_between_the_writes_of_the_first(out: Path, kgctl: Kgctl) -> None:
    with held_by_one_run(out):
        done = run(kgctl, out, "lag", "--once")
    assert done.returncode == 6
    assert f"pid {os.getpid()} runs jobs there" in done.stderr
    assert "Spark" not in done.stderr


def test_a_second_signal_ends_a_run_at_once_and_is_no_failure(kgctl: Kgctl, tmp_path: Path) -> None:
    with running(kgctl, tmp_path, "decode", "--follow", "--json") as child:
        await_line(told_by(child), lambda line: line["kind"] == "starting")
        child.send_signal(signal.SIGINT)
        child.send_signal(signal.SIGTERM)
        assert child.wait(PATIENCE_S) == 130


def test_a_run_that_follows_sees_what_comes_and_ends_at_ctrl_c(kgctl: Kgctl, tmp_path: Path) -> None:
    with running(kgctl, tmp_path, "decode", "rebalances", "--follow", "--trigger", "0.5", "--json") as child:
        told = told_by(child)
        await_line(told, lambda line: line["kind"] == "progress" and line["job"] == "decode")
        kgctl.commit("late", "orders", p0=77)
        await_line(told, lambda _: any(row["group"] == "late" for row in rows(tmp_path, "commits")))
        child.send_signal(signal.SIGINT)
        assert child.wait(PATIENCE_S) == 130


@pytest.mark.cluster
def test_a_killed_run_leaves_no_process_and_the_next_one_goes_on(kgctl: Kgctl, tmp_path: Path) -> None:
    with running(kgctl, tmp_path, "decode", "--follow", "--trigger", "0.2", "--json") as child:
        await_line(told_by(child), lambda line: line["kind"] == "progress")
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


def test_a_cluster_that_is_not_there_is_told_before_spark_starts(tmp_path: Path) -> None:
    done = run(Kgctl("127.0.0.1:1"), tmp_path, "decode", "--once", "--timeout", "5")
    assert done.returncode == 7
    assert "connection refused" in done.stderr
    assert "Spark" not in done.stderr


def test_a_setting_that_spark_refuses_is_told_with_the_end_of_its_log(kgctl: Kgctl, tmp_path: Path) -> None:
    done = run(kgctl, tmp_path, "decode", "--once", "--conf", "spark.driver.memory=lots")
    assert done.returncode == 1
    assert f"The end of {tmp_path / 'spark.log'}" in done.stderr
    assert "Traceback" not in done.stderr.splitlines()[-1]


@contextlib.contextmanager
def running(kgctl: Kgctl, out: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    command = [*KGCTL, "pipeline", "run", *words, "--quick", "--out", str(out), "--bootstrap", str(kgctl.bootstrap)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as child:
        try:
            yield child
        finally:
            child.kill()


def told_by(child: subprocess.Popen[str]) -> Iterator[dict[str, Any]]:
    assert child.stdout is not None
    watchdog = threading.Timer(PATIENCE_S, child.kill)
    watchdog.start()
    try:
        for line in child.stdout:
            yield json.loads(line)
    finally:
        watchdog.cancel()


def await_line(lines: Iterator[dict[str, Any]], holds: Any) -> None:
    assert any(holds(line) for line in lines), "the run ended before that"


def below(pid: int) -> list[int]:
    """The processes below one, as /proc or ps tell them."""
    listed = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout.split()
    parents = dict(zip(map(int, listed[::2]), map(int, listed[1::2]), strict=True))
    found: list[int] = []
    for child in parents:
        step, seen = child, 0
        while step in parents and seen < 20:
            step, seen = parents[step], seen + 1
            if step == pid:
                found.append(child)
                break
    return found


def await_end(pid: int) -> None:
    deadline = threading.Event()
    timer = threading.Timer(PATIENCE_S, deadline.set)
    timer.start()
    try:
        while is_there(pid):
            assert not deadline.wait(0.05), f"process {pid} is still there"
    finally:
        timer.cancel()


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    listed = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return bool(listed.strip()) and not listed.startswith("Z")
