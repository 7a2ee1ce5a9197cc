"""Each transaction is wholly committed or wholly aborted when a broker is killed; faulty brokers are caught."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.durability.parts import Violation
from tests.durability.spawning import in_memory
from tests.durability.transactions import steps
from tests.durability.transactions.cycles import Run
from tests.durability.victim import Victim

pytest.importorskip("confluent_kafka")

CAUGHT_BY = {
    "half of a transaction is committed": "is missing",
    "open transactions are shown": "was aborted|changed|copied|is missing",
    "aborted transactions are shown": "was aborted",
    "aborted transactions are forgotten": "was aborted|changed",
    "ends are answered before they are durable": "is missing|gave up|is stored",
    "offsets of aborted transactions are committed": "without its output",
    "offsets of transactions are dropped": "is stored|copied the record|has output",
    "transactional ids are forgotten": "gave up|ended with",
}


@pytest.mark.slow
def test_every_transaction_is_whole_in_kill_cycles(tmp_path: Path) -> None:
    summary = Run(tmp_path, 3, Victim(tmp_path, durability="power"), print).run(5)
    assert summary.cycles == 5
    ends = ("librdkafka committed", "librdkafka aborted", "wire committed", "wire aborted", "assigned copied")
    assert all(summary.counts[what] > 0 for what in ends), summary.counts


@pytest.mark.slow
def test_a_kill_at_any_change_of_a_file_leaves_every_transaction_whole() -> None:
    with in_memory() as directory:
        assert steps.run(directory, 3, 8, print)["rounds"] == 8


@pytest.mark.soak
@pytest.mark.parametrize("fault", CAUGHT_BY)
def test_a_faulty_broker_is_caught(tmp_path: Path, fault: str) -> None:
    victim = Victim(tmp_path, durability="power", module="tests.durability.faulty_broker", arguments=(fault,))
    with pytest.raises(Violation, match=CAUGHT_BY[fault]):
        Run(tmp_path, 1, victim, print).run(20)
