"""The checks of the kill tests notice planted faults."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from broker.local import LocalBroker
from tests.kgctl.pipelines.cluster.conftest import conf_for, fill
from tests.kgctl.pipelines.cluster.copying import Copy
from tests.kgctl.pipelines.cluster.programs import copied_to_the_end, copying
from tests.kgctl.pipelines.cluster.readings import read_all
from tests.kgctl.pipelines.cluster.waiting import Gate

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

RECORDS, BATCH_ROWS = 40_000, 20_000


@pytest.fixture
def few(tmp_path: Path) -> Iterator[Copy]:
    """Copies a few records on this machine alone."""
    gate = tmp_path / "gate"
    gate.mkdir()
    with LocalBroker() as broker:
        fill(broker.bootstrap_servers, "few", RECORDS)
        out, where = str(tmp_path / "out"), broker.bootstrap_servers
        yield Copy(where, "few", out, "local[2]", BATCH_ROWS, str(gate), conf_for(tmp_path))


def test_a_repeated_batch_with_another_id_is_noticed(few: Copy, tmp_path: Path) -> None:
    with copying(replace(few, committed_hold=0), tmp_path, FAULT="new-ids") as program:
        program.await_that(Gate(Path(few.gate)).arrived, "it did not reach the gate")
        program.kill()
    lines = copied_to_the_end(few, tmp_path, FAULT="new-ids")
    assert lines[-1] == {"rows": RECORDS + BATCH_ROWS, "places": RECORDS, "keys": RECORDS}
    with pytest.raises(AssertionError, match=rf"{RECORDS + BATCH_ROWS} rows: .*{RECORDS}\)"):
        read_all(few.table)


def test_files_renamed_before_the_commit_are_noticed(few: Copy, tmp_path: Path) -> None:
    with copying(few, tmp_path, FAULT="names-first", FAULT_GATE=few.gate) as program:
        program.await_that(Gate(Path(few.gate)).arrived, "it did not reach the gate")
        program.kill()
    with pytest.raises(AssertionError, match="not committed"):
        read_all(few.table)
