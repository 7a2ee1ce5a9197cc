"""Nothing acknowledged is lost, moved or duplicated when a broker is killed; faulty brokers are caught."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.durability.cycles import Run
from tests.durability.parts import Violation
from tests.durability.victim import Victim

pytest.importorskip("confluent_kafka")

CAUGHT_BY = {
    "commits are answered before they are durable": "was acknowledged|was committed by members",
    "producers are forgotten": "twice|gave up|is not at",
    "generations are forgotten": "generation",
}
SLOWLY_CAUGHT = "producers are forgotten"


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_in_kill_cycles(tmp_path: Path) -> None:
    summary = Run(tmp_path, 4, Victim(tmp_path, durability="power"), print).run(4)
    assert summary.cycles == 4
    assert set(summary.kills) == {"under load", "at start-up", "after a rebalance"}
    assert all(summary.acknowledged[what] > 0 for what in ("idempotent", "plain", "commits", "group commits"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault", [pytest.param(fault, marks=[pytest.mark.soak] if fault == SLOWLY_CAUGHT else []) for fault in CAUGHT_BY]
)
def test_a_faulty_broker_is_caught(tmp_path: Path, fault: str) -> None:
    victim = Victim(tmp_path, durability="power", module="tests.durability.faulty_broker", arguments=(fault,))
    with pytest.raises(Violation, match=CAUGHT_BY[fault]):
        Run(tmp_path, 1, victim, print).run(40)
