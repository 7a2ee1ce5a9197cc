"""The driver of a stream (Python and JVM) is killed: between our commit and Spark's, during a batch, at random moments."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kgctl.pipelines.tables.manifest import TableFolder
from tests.kgctl.pipelines.cluster.conftest import BATCH_ROWS, RECORDS
from tests.kgctl.pipelines.cluster.copying import Copy, batch_id
from tests.kgctl.pipelines.cluster.programs import copied_to_the_end, copying
from tests.kgctl.pipelines.cluster.readings import read_all, whole
from tests.kgctl.pipelines.cluster.standalone import WORKERS, Cluster
from tests.kgctl.pipelines.cluster.waiting import Gate

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

LAST = {"rows": RECORDS, "places": RECORDS, "keys": RECORDS}
BATCHES = RECORDS // BATCH_ROWS


def test_a_batch_is_not_written_again_after_a_kill_between_our_commit_and_sparks(copy: Copy, cluster: Cluster) -> None:
    with copying(replace(copy, committed_hold=2), cluster.scratch) as program:
        program.await_line(lambda line: line.get("batch") == 2)
        program.await_that(Gate(Path(copy.gate)).arrived, "it did not reach the gate")
        program.kill()
    assert is_committed(copy, 2)
    assert (is_planned(copy, 2), is_done(copy, 2)) == (True, False)
    assert read_all(copy.table) == whole(3 * BATCH_ROWS)

    lines = copied_to_the_end(copy, cluster.scratch)
    assert lines[0] == {"batch": 2, "rows": 0, "new": False}
    assert lines[-1] == LAST
    assert_copied_once(copy)


def test_a_batch_is_written_completely_after_a_kill_during_its_tasks(copy: Copy, cluster: Cluster) -> None:
    with copying(replace(copy, tasks_hold=4), cluster.scratch) as program:
        gate = Gate(Path(copy.gate))
        program.await_that(lambda: len(gate.arrived()) == WORKERS, "the tasks did not reach the gate")
        assert list(TableFolder(copy.table).staging.glob("copy-000004-*/_temporary"))
        program.kill()
    assert (is_planned(copy, 4), is_committed(copy, 4), is_done(copy, 4)) == (True, False, False)
    assert read_all(copy.table) == whole(4 * BATCH_ROWS)

    lines = copied_to_the_end(copy, cluster.scratch)
    assert lines[0] == {"batch": 4, "rows": BATCH_ROWS, "new": True}
    assert lines[-1] == LAST
    assert_copied_once(copy)


def test_kills_at_random_moments_lose_and_double_nothing(
    copy: Copy, cluster: Cluster, record_property: Callable[[str, object], None]
) -> None:
    seed = int(os.environ.get("SEED", random.randrange(10**6)))
    record_property("seed", seed)
    randomness = random.Random(seed)
    done = -1
    for _ in range(3):
        done = min(done + randomness.randrange(1, 4), BATCHES - 1)
        moment, happened = randomness.choice(MOMENTS)
        with copying(copy, cluster.scratch) as program:
            program.await_that(lambda: happened(copy, done), f"seed {seed}: {moment} of batch {done}")  # noqa: B023
            program.kill()
        seen = read_all(copy.table)
        assert seen.manifests == seen.files_of_manifests, f"seed {seed}: {moment} of batch {done}"
        assert {batch.rows for batch in TableFolder(copy.table).state().batches} <= {BATCH_ROWS}
    assert copied_to_the_end(copy, cluster.scratch)[-1] == LAST, f"seed {seed}"
    assert_copied_once(copy)


def is_planned(copy: Copy, number: int) -> bool:
    return (copy.checkpoint / "offsets" / str(number)).exists()


def is_staged(copy: Copy, number: int) -> bool:
    """At least one of its files was staged."""
    staging = TableFolder(copy.table).staging
    return any(staging.glob(f"{batch_id(number)}-*/**/*.parquet")) or is_committed(copy, number)


def is_committed(copy: Copy, number: int) -> bool:
    return TableFolder(copy.table).state().knows(batch_id(number))


def is_visible(copy: Copy, number: int) -> bool:
    return any(copy.table.glob(f"date=*/{batch_id(number)}-*.parquet"))


def is_done(copy: Copy, number: int) -> bool:
    """In Spark's own commit log."""
    return (copy.checkpoint / "commits" / str(number)).exists()


MOMENTS = [
    ("planned", is_planned),
    ("staged", is_staged),
    ("committed", is_committed),
    ("visible", is_visible),
    ("done", is_done),
]


def assert_copied_once(copy: Copy) -> None:
    assert read_all(copy.table) == whole(RECORDS)
    folder = TableFolder(copy.table)
    assert [batch.id for batch in folder.state().batches] == [batch_id(number) for number in range(BATCHES)]
    assert list(folder.staging.iterdir()) == []
