"""Every table equals what was computed without Spark: on a first run, when runs resume after kills in the middle of a batch, and under --follow."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.harness import clusters
from tests.harness.commandline import Kgctl
from tests.harness.reference_kafka import Unavailable
from tests.kgctl.pipelines.cluster.programs import Program, running
from tests.kgctl.pipelines.runs import rows
from tests.kgctl.pipelines.truth import checks
from tests.kgctl.pipelines.truth.logs import Logs
from tests.kgctl.pipelines.truth.traffic import Traffic

pytestmark = pytest.mark.timeout(900)

JOBS = ("decode", "lag", "evaluate", "rebalances", "commit_rates", "churn")


@dataclass
class World:
    """One cluster with its traffic, and the folder of the runs."""

    kind: str
    cluster: clusters.Cluster
    traffic: Traffic
    logs: Logs
    out: Path

    def rounds(self, count: int) -> None:
        for _ in range(count):
            self.traffic.round()
            self.logs.read()

    def running(self, *arguments: str) -> AbstractContextManager[Program]:
        where = ["--bootstrap", self.cluster.bootstrap_servers, "--out", str(self.out)]
        command = ["kgctl", "pipeline", "run", *JOBS, "--quick", "--json", "--step", "1", *where, *arguments]
        return running(command, self.out.parent / "stderr.log", self.out.parent)

    def run(self) -> None:
        with self.running() as program:
            assert program.await_end(240) == 0, program.stderr_tail()

    def run_and_kill(self, job: str) -> None:
        """Kill a run when this job has committed one of many batches."""
        with self.running("--max-offsets-per-trigger", "200") as program:
            program.await_line(lambda line: line["kind"] == "progress" and line.get("job") == job)

    def check(self) -> None:
        checks.check_commits(self.out, self.logs, self.traffic)
        checks.check_group_events(self.out, self.logs)
        checks.check_log_ends(self.out, self.logs, 1000)
        checks.check_lag(self.out, self.logs)
        checks.check_health(self.out, self.logs)
        checks.check_rebalances(self.out, self.traffic, self.kind)
        checks.check_commit_rates(self.out, self.logs, 1000)
        checks.check_churn(self.out, self.traffic)


@pytest.fixture(params=["kgctl", "kafka"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    try:
        started = clusters.start(request.param)
    except Unavailable as reason:
        pytest.skip(f"no real Kafka: {reason}")
    with started as cluster:
        where = cluster.bootstrap_servers
        traffic = Traffic(Kgctl(where))
        traffic.create_topics()
        yield World(request.param, cluster, traffic, Logs(where), tmp_path / "out")


@pytest.mark.reference
def test_tables_equal_the_truth_on_a_first_run_and_when_killed_runs_resume(world: World) -> None:
    world.rounds(3)
    world.run()
    world.check()
    world.rounds(3)
    world.run_and_kill("decode")
    world.rounds(1)
    world.run_and_kill("rebalances")
    world.run()
    world.check()
    statuses = {row["status"] for row in rows(world.out, "health")}
    assert statuses >= {"OK", "STALLED", "STOPPED", "LAGGING"}, statuses


@pytest.mark.cluster
def test_tables_equal_the_truth_after_following_through_restarts_of_the_broker(world: World) -> None:
    world.rounds(1)
    with world.running("--follow", "--trigger", "0.5") as program:
        world.rounds(1)
        for _ in range(2):
            await_round(program)
            world.cluster.restart()
            world.rounds(1)
        await_round(program)
        world.cluster.restart()
        await_round(program)
    world.check()


def await_round(program: Program) -> None:
    """Wait until the batch jobs have worked on what was there before this call."""
    done = sum(line["kind"] == "done" and line["job"] == JOBS[-1] for line in program.lines)
    # The current round may have begun before.
    program.await_that(
        lambda: sum(line["kind"] == "done" and line["job"] == JOBS[-1] for line in program.lines) >= done + 2,
        "no evaluation",
    )
