"""Every table equals what was computed without Spark: on a first run, when runs resume after kills in the middle of a batch, and under --follow."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from kgctl.pipelines.catalog import JOBS
from tests.harness.commandline import Kgctl
from tests.harness.reference_kafka import Unavailable
from tests.kgctl.pipelines.cluster.programs import Program, running
from tests.kgctl.pipelines.truth.checks import CHECKS
from tests.kgctl.pipelines.truth.checks_members import changes
from tests.kgctl.pipelines.truth.logs import Logs
from tests.kgctl.pipelines.truth.stored import Stored
from tests.kgctl.pipelines.truth.traffic import GROUPS, Traffic
from tests.kgctl.pipelines.truth.world import STEP_MS, World, start

pytestmark = pytest.mark.timeout(900)

LAST_JOB = next(reversed(JOBS))


@pytest.fixture
def world(kind: str, tmp_path: Path) -> Iterator[World]:
    try:
        started = start(kind)
    except Unavailable as reason:
        pytest.skip(f"no real Kafka: {reason}")
    with started as cluster:
        where = cluster.bootstrap_servers
        traffic = Traffic(Kgctl(where), kind == "kafka")
        traffic.create_topics()
        yield World(tmp_path / "out", GROUPS, STEP_MS, kind, cluster, traffic, Logs(where), Stored(where))
        traffic.transactions.close()


def pipeline(world: World, *arguments: str, jobs: Iterable[str] = JOBS) -> AbstractContextManager[Program]:
    world.began_ms = time.time_ns() // 1_000_000
    where = ["--bootstrap", world.cluster.bootstrap_servers, "--out", str(world.out)]
    command = ["kgctl", "pipeline", "run", *jobs, "--quick", "--json", "--step", str(STEP_MS / 1000), *where]
    return running([*command, *arguments], world.out.parent / "stderr.log", world.out.parent)


def run(world: World) -> None:
    with pipeline(world) as program:
        assert program.await_end(600) == 0, program.stderr_tail()


def run_and_kill(world: World, job: str) -> None:
    """Kill a run of this stream when it has committed one of many batches."""
    with pipeline(world, "--max-offsets-per-trigger", "50", jobs=[job]) as program:
        program.await_line(lambda line: line["kind"] == "progress" and line.get("job") == job)


def check(world: World) -> None:
    world.read()
    for table, compare in CHECKS.items():
        assert world.rows(table) or table in ("quarantine", "anomalies"), table
        compare(world)


def test_every_table_has_a_check() -> None:
    assert CHECKS.keys() == {table.name for job in JOBS.values() for table in job.writes}


@pytest.mark.parametrize(
    "kind", [pytest.param("kgctl", marks=pytest.mark.cluster), pytest.param("kafka", marks=pytest.mark.reference)]
)
def test_tables_equal_the_truth_on_a_first_run(world: World) -> None:
    world.rounds(3)
    run(world)
    check(world)


@pytest.mark.cluster
@pytest.mark.parametrize("kind", ["kgctl", "kafka"])
def test_tables_equal_the_truth_when_killed_runs_resume(world: World) -> None:
    world.rounds(3)
    run(world)
    before = {table: set(map(repr, world.rows(table))) for table in CHECKS}
    world.rounds(3)
    for stream in ("decode", "rebalances", "transactions"):
        run_and_kill(world, stream)
        world.rounds(1)
    run(world)
    check(world)
    for table, known in before.items():
        assert known <= set(map(repr, world.rows(table))), table
    statuses = {row["status"] for row in world.rows("health")}
    assert statuses >= {"OK", "STALLED", "STOPPED", "LAGGING"}, statuses


@pytest.mark.cluster
@pytest.mark.parametrize("kind", ["kgctl", "kafka"])
def test_tables_equal_the_truth_after_following_through_restarts_of_the_broker(world: World) -> None:
    world.rounds(1)
    with pipeline(world, "--follow", "--trigger", "0.5", "--scan-every", "1") as program:
        world.rounds(1)
        for _ in range(2):
            await_round(program)
            world.cluster.restart()
            world.rounds(1)
        await_round(program)
        world.cluster.restart()
        await_round(program)
        # Windows of churn are long.
        left = sum(event == "left" for _, event, _ in changes(world))
        program.await_that(lambda: len(world.of_users("f_session")) == left, "members that have left are missing")
        await_round(program)
    check(world)


def await_round(program: Program) -> None:
    """Wait until the batch jobs have worked on what was there before this call."""
    done = sum(line["kind"] == "done" and line["job"] == LAST_JOB for line in program.lines)
    # The current round may have begun before.
    program.await_that(
        lambda: sum(line["kind"] == "done" and line["job"] == LAST_JOB for line in program.lines) >= done + 2,
        "no end of a round",
    )
