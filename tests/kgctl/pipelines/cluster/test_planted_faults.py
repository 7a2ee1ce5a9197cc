"""Faults that were put in on purpose are noticed by what the tests of kills look at."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from broker.local import LocalBroker
from tests.kgctl.pipelines.cluster.conftest import conf_for, fill
from tests.kgctl.pipelines.cluster.copying import Copy
from tests.kgctl.pipelines.cluster.programs import copied_to_the_end, copying
from tests.kgctl.pipelines.cluster.readings import look
from tests.kgctl.pipelines.cluster.waiting import Gate

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

RECORDS, BATCH_ROWS = 40_000, 20_000


@pytest.fixture
def few(tmp_path: Path) -> Iterator[Copy]:
    """A few records, by this machine alone."""
    gate = tmp_path / "gate"
    gate.mkdir()
    with LocalBroker() as broker:
        fill(broker.bootstrap_servers, "few", RECORDS)
        out, where = str(tmp_path / "out"), broker.bootstrap_servers
        yield Copy(where, "few", out, "local[2]", BATCH_ROWS, str(gate), conf_for(tmp_path))


def test_a_batch_that_gets_another_id_when_it_is_repeated_is_noticed(few: Copy, tmp_path: Path) -> None:
    with copying(replace(few, committed_hold=0), tmp_path, FAULT="new-ids") as program:
        program.await_that(Gate(Path(few.gate)).standing, "it did not come to the gate")
        program.kill()
    lines = copied_to_the_end(few, tmp_path, FAULT="new-ids")
    assert lines[-1] == {"rows": RECORDS + BATCH_ROWS, "places": RECORDS, "keys": RECORDS}
    with pytest.raises(AssertionError, match=rf"{RECORDS + BATCH_ROWS} rows: .*{RECORDS}\)"):
        look(few.table)


def test_files_with_names_before_the_commit_are_noticed(few: Copy, tmp_path: Path) -> None:
    with copying(few, tmp_path, FAULT="names-first", FAULT_GATE=few.gate) as program:
        program.await_that(Gate(Path(few.gate)).standing, "it did not come to the gate")
        program.kill()
    with pytest.raises(AssertionError, match="not committed"):
        look(few.table)
