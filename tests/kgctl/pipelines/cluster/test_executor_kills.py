"""An executor is killed during a batch: another executor repeats its tasks in the same run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.kgctl.pipelines.cluster.conftest import BATCH_ROWS
from tests.kgctl.pipelines.cluster.copying import Copy
from tests.kgctl.pipelines.cluster.programs import copying
from tests.kgctl.pipelines.cluster.readings import read_all, whole
from tests.kgctl.pipelines.cluster.standalone import WORKERS, Cluster
from tests.kgctl.pipelines.cluster.test_driver_kills import BATCHES, LAST, assert_copied_once
from tests.kgctl.pipelines.cluster.waiting import Gate

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]


def test_another_executor_repeats_the_tasks_of_a_killed_one(copy: Copy, cluster: Cluster) -> None:
    with copying(replace(copy, tasks_hold=3), cluster.scratch) as program:
        gate = Gate(Path(copy.gate))
        program.await_that(lambda: len(gate.arrived()) == WORKERS, "the tasks did not reach the gate")
        held = gate.arrived()
        executors = {name: cluster.executor_of(pid) for name, pid in held.items()}
        assert sorted(executors.values()) == sorted(cluster.executors())
        victim = min(held)
        assert victim.endswith("-0"), "not a first attempt"
        cluster.kill_executor(executors[victim])
        assert read_all(copy.table) == whole(3 * BATCH_ROWS)
        gate.open()
        assert program.await_end() == 0, program.stderr_tail()
        lines = program.lines
    assert victim.removesuffix("-0") + "-1" in gate.arrived()
    assert [(line["batch"], line["new"]) for line in lines[:-1]] == [(number, True) for number in range(BATCHES)]
    assert lines[-1] == LAST
    assert_copied_once(copy)
