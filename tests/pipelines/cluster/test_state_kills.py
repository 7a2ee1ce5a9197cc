"""The rebalances job, which keeps state per group, is killed in mid-batch: its rows are those of a run that nobody killed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from broker.local import LocalBroker
from kgctl.pipelines.tables.manifest import TableFolder
from tests.kgctl.commandline import Kgctl, member_of
from tests.pipelines.cluster.pipeline_runs import LOCAL, comparable, pipeline, rows, run_to_the_end
from tests.pipelines.cluster.programs import Program
from tests.pipelines.cluster.standalone import Cluster

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

GROUPS, ROUNDS = 30, 30
# Each round of a group: members called, stable, empty. Batches end in the middle of rounds.
EVENTS = 3 * GROUPS * ROUNDS
BATCH = 400


@dataclass(frozen=True, slots=True)
class State:
    """What the job has on disk, by number of batch."""

    out: Path

    @property
    def checkpoint(self) -> Path:
        return self.out / "_checkpoints" / "rebalances"

    def is_planned(self, number: int) -> bool:
        return (self.checkpoint / "offsets" / str(number)).exists()

    def is_kept(self, number: int) -> bool:
        """The state of one partition at least as it is after the batch."""
        return any(self.checkpoint.glob(f"state/0/*/{number + 1}*.*")) or any(
            self.checkpoint.glob(f"state/0/*/**/{number + 1}*.*")
        )

    def is_committed(self, number: int) -> bool:
        return any(batch.id.endswith(f"-{number:06d}") for batch in TableFolder(self.out / "f_rebalance").batches())

    def is_done(self, number: int) -> bool:
        return (self.checkpoint / "commits" / str(number)).exists()


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    """A broker with a few thousand events."""
    with LocalBroker({"group.initial.rebalance.delay.ms": 0}) as broker:
        kgctl = Kgctl(broker.bootstrap_servers)
        assert kgctl("topics", "create", "orders", "--partitions", "3").exit_code == 0
        for number in range(ROUNDS):
            for group in range(GROUPS):
                with member_of(kgctl, f"group-{group}", {"orders": [number % 3]}):
                    pass
        yield broker.bootstrap_servers


@pytest.fixture(scope="module")
def undisturbed(bootstrap: str, cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The rows of one batch on this machine."""
    out = tmp_path_factory.mktemp("undisturbed") / "out"
    run_to_the_end(cluster, bootstrap, out, "rebalances", master=LOCAL)
    found = comparable(rows(out, "f_rebalance"))
    assert len(set(found)) == len(found) == 2 * GROUPS * ROUNDS
    return found


def test_rows_are_those_of_a_run_without_kills(
    bootstrap: str, cluster: Cluster, undisturbed: list[str], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    state, words = State(out), ("rebalances", "--max-offsets-per-trigger", str(BATCH))
    unfinished = []
    for number, happened in ((1, state.is_planned), (2, state.is_kept), (3, state.is_committed)):
        with pipeline(cluster, bootstrap, out, *words) as program:
            await_batch(program, happened, number)
            program.kill()
        unfinished.append(not state.is_done(number))
    with pipeline(cluster, bootstrap, out, *words) as program:
        await_batch(program, state.is_planned, 4)
        cluster.kill_executor(cluster.executors()[0])
        assert program.await_end() == 0, program.said()
    # A batch may have come to its end in the moment between; not every time.
    assert any(unfinished)
    assert state.is_done(EVENTS // BATCH)
    assert comparable(rows(out, "f_rebalance")) == undisturbed


def await_batch(program: Program, happened: Callable[[int], bool], number: int) -> None:
    program.await_that(lambda: happened(number), f"batch {number}: {happened.__name__}")
