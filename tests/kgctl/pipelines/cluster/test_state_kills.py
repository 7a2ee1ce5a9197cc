"""The stateful job rebalances is killed during batches: its rows are those of a run without kills."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from broker.local import LocalBroker
from kgctl.pipelines.tables.manifest import TableFolder
from tests.harness.commandline import Kgctl, member_of
from tests.kgctl.pipelines.cluster.pipeline_runs import LOCAL, comparable, pipeline, run_to_the_end
from tests.kgctl.pipelines.cluster.standalone import Cluster
from tests.kgctl.pipelines.runs import rows

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

GROUPS, ROUNDS = 30, 25
# At least: in each round a group starts a rebalance, becomes stable, becomes empty. Batches end within rounds.
EVENTS = 3 * GROUPS * ROUNDS
BATCH = 400


@dataclass(frozen=True, slots=True)
class State:
    """The state of the job on disk, by batch number."""

    out: Path

    @property
    def checkpoint(self) -> Path:
        return self.out / "_checkpoints" / "rebalances"

    def is_planned(self, number: int) -> bool:
        return (self.checkpoint / "offsets" / str(number)).exists()

    def has_state(self, number: int) -> bool:
        """Whether at least one partition has written its state after the batch."""
        return any(self.checkpoint.glob(f"state/0/*/{number + 1}.zip"))

    def is_committed(self, number: int) -> bool:
        return any(
            batch.id.endswith(f"-{number:06d}") for batch in TableFolder(self.out / "f_rebalance").state().batches
        )

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
    """The rows of a single batch on this machine."""
    out = tmp_path_factory.mktemp("undisturbed") / "out"
    run_to_the_end(cluster, bootstrap, out, "rebalances", master=LOCAL)
    found = comparable(rows(out, "f_rebalance"))
    assert len(set(found)) == len(found) == 2 * GROUPS * ROUNDS
    return found


def test_rows_are_those_of_a_run_without_kills(
    bootstrap: str, cluster: Cluster, undisturbed: list[str], tmp_path: Path
) -> None:
    state = State(tmp_path / "out")
    arguments = ("rebalances", "--max-offsets-per-trigger", str(BATCH))
    moments = [state.is_planned, state.has_state, state.is_committed]
    number = 0
    while moments:
        number += 1
        with pipeline(cluster, bootstrap, state.out, *arguments) as program:
            program.kill_at(partial(state.is_planned, number), partial(moments[0], number), moments[0].__name__)
        # The batch may have finished in the same instant.
        if not state.is_done(number):
            del moments[0]
    with pipeline(cluster, bootstrap, state.out, *arguments) as program:
        program.await_that(partial(state.is_planned, number + 1), f"no batch {number + 1}")
        cluster.kill_executor(cluster.executors()[0])
        assert program.await_end() == 0, program.stderr_tail()
    assert state.is_done(EVENTS // BATCH)
    assert comparable(rows(state.out, "f_rebalance")) == undisturbed
