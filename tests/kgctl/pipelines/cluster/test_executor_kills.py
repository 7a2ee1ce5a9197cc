"""An executor of the cluster is killed in mid-batch: what it did not finish is done elsewhere, in the same run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.kgctl.pipelines.cluster.conftest import BATCH_ROWS
from tests.kgctl.pipelines.cluster.copying import Copy
from tests.kgctl.pipelines.cluster.programs import copying
from tests.kgctl.pipelines.cluster.readings import look, whole
from tests.kgctl.pipelines.cluster.standalone import WORKERS, Cluster
from tests.kgctl.pipelines.cluster.test_driver_kills import BATCHES, LAST, assert_copied_once
from tests.kgctl.pipelines.cluster.waiting import Gate

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]


def test_the_tasks_of_a_killed_executor_are_done_by_another_one(copy: Copy, cluster: Cluster) -> None:
    with copying(replace(copy, tasks_hold=3), cluster.scratch) as program:
        gate = Gate(Path(copy.gate))
        program.await_that(lambda: len(gate.standing()) == WORKERS, "tasks did not come to the gate")
        held = gate.standing()
        executors = {name: cluster.executor_of(pid) for name, pid in held.items()}
        assert sorted(executors.values()) == sorted(cluster.executors())
        victim = min(held)
        assert victim.endswith("-0"), "a first attempt"
        cluster.kill_executor(executors[victim])
        assert look(copy.table) == whole(3 * BATCH_ROWS)
        gate.open()
        assert program.await_end() == 0, program.said()
        lines = program.lines
    assert victim.removesuffix("-0") + "-1" in gate.standing()
    assert [(line["batch"], line["new"]) for line in lines[:-1]] == [(number, True) for number in range(BATCHES)]
    assert lines[-1] == LAST
    assert_copied_once(copy)
