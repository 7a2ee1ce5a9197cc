"""Each transaction is wholly committed or wholly aborted when a broker is killed; faulty brokers are caught."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.durability.transactions.cycles import Run
from tests.durability.victim import Victim

pytest.importorskip("confluent_kafka")


@pytest.mark.slow
def test_every_transaction_is_whole_in_kill_cycles(tmp_path: Path) -> None:
    summary = Run(tmp_path, 3, Victim(tmp_path, durability="power"), print).run(5)
    assert summary.cycles == 5
    ends = ("librdkafka committed", "librdkafka aborted", "wire committed", "wire aborted", "assigned copied")
    assert all(summary.counts[what] > 0 for what in ends), summary.counts
