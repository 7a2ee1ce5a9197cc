"""Consumer groups keep their epochs, targets and commits when a broker is killed; faulty brokers are caught."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.durability.consumer_groups import CONFIG, Run
from tests.durability.parts import Violation
from tests.durability.victim import Victim

CAUGHT_BY = {
    "commits are answered before they are durable": "is committed for partition",
    "heartbeats are answered before they are durable": "is known|learns epoch|has not given up|the group gets",
    "epochs are forgotten": "is known|learns epoch",
}


@pytest.mark.slow
def test_epochs_and_commits_of_a_consumer_group_survive_kills(tmp_path: Path) -> None:
    figures = Run(tmp_path, 3, Victim(tmp_path, durability="power", config=CONFIG), print).run(4)
    assert figures["rounds"] == 4
    assert all(figures[what] for what in ("heartbeats", "commits", "targets compared after a restart"))


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize("fault", CAUGHT_BY)
def test_a_faulty_broker_is_caught(tmp_path: Path, fault: str) -> None:
    module, arguments = "tests.durability.faulty_broker", (fault,)
    victim = Victim(tmp_path, durability="power", module=module, arguments=arguments, config=CONFIG)
    with pytest.raises(Violation, match=CAUGHT_BY[fault]):
        Run(tmp_path, 1, victim, print).run(40)
