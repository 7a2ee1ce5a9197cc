"""What the journal says about a change that does not end as planned."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from kgctl.client.net.errors import KgctlError, TimedOut
from kgctl.journal.journal import Journal, Origin
from kgctl.journal.making import plan_of, snapshot_of
from kgctl.journal.recording import recorded
from kgctl.model.plans import OFFSETS, ChangeRow, GroupPlan

ORIGIN = Origin("ann", "here", "127.0.0.1:9092", None, "kgctl groups reset-offsets g")


@pytest.mark.parametrize(
    ("error", "outcome"), [(KeyboardInterrupt(), "interrupted"), (TimedOut("no answer"), "failed")]
)
def test_a_change_that_is_interrupted_or_fails_says_so(tmp_path: Path, error: BaseException, outcome: str) -> None:
    journal = Journal({"XDG_STATE_HOME": str(tmp_path)}, "c")
    plan = plan_of("groups reset-offsets", "c", 0, [GroupPlan("g", OFFSETS, "Empty")])

    def act() -> Sequence[ChangeRow]:
        assert [row.outcome for row in journal.rows()] == ["running"]
        raise error

    with pytest.raises((KeyboardInterrupt, KgctlError)):
        recorded(journal, plan, snapshot_of("c", 0, ()), ORIGIN, act, lambda rows: rows, warn=pytest.fail)
    assert [row.outcome for row in journal.rows()] == [outcome]
