"""What the journal says about a change that does not end as planned."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from kgctl.client.net.errors import KgctlError, Precondition, TimedOut
from kgctl.journal.journal import Journal, Origin, results_of
from kgctl.journal.making import plan_of, snapshot_of
from kgctl.journal.recording import recorded
from kgctl.journal.results import Outcome, row_key
from kgctl.model.failure import RowError
from kgctl.model.items import CONFIG, SET, Item
from kgctl.model.plans import OFFSETS, ChangeRow, GroupPlan

ORIGIN = Origin("ann", "here", "127.0.0.1:9092", None, "kgctl groups reset-offsets g")


@pytest.mark.parametrize(
    ("error", "outcome"),
    [(KeyboardInterrupt(), "interrupted"), (Precondition("no"), "failed"), (TimedOut("no answer"), "unknown")],
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


def test_of_several_rows_each_has_its_own_result(tmp_path: Path) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path)}
    journal = Journal(environ, "c")
    plan = plan_of("reset-offsets", "c", 0, [GroupPlan(name, OFFSETS, "Empty") for name in "gh"])
    lost = RowError("TIMED_OUT", "no answer")
    rows = [
        ChangeRow("g", OFFSETS, "t", 0, status="done"),
        ChangeRow("g", OFFSETS, "t", 1, status="failed", error=lost),
        ChangeRow("g", OFFSETS, "t", 2, status="failed", error=RowError("NOT_FOUND", "no such partition")),
        ChangeRow("h", OFFSETS, "t", 0, status="skipped"),
    ]
    recorded(journal, plan, snapshot_of("c", 0, ()), ORIGIN, lambda: rows, lambda rows: rows, warn=pytest.fail)
    (row,) = journal.rows()
    assert (row.outcome, row.message) == ("unknown", "no answer")
    results = results_of(environ, row)
    assert [results.of(row_key(one)) for one in rows] == [
        "done",
        "unknown: no answer",
        "failed: no such partition",
        "skipped",
    ]


def test_an_error_of_a_secret_config_is_not_kept(tmp_path: Path) -> None:
    journal = Journal({"XDG_STATE_HOME": str(tmp_path)}, "c")
    items = [Item(CONFIG, SET, ("broker", "1"), "ssl.key.password", None, "***", is_kept=False)]
    refused = [Outcome(items[0].key, RowError("INVALID_CONFIG", "hunter2 is too short"), "failed")]
    plan, before = plan_of("configs set", "c", 0, ()), snapshot_of("c", 0, ())
    recorded(journal, plan, before, ORIGIN, lambda: refused, lambda rows: rows, items=items, warn=pytest.fail)
    assert [row.outcome for row in journal.rows()] == ["failed"]
    assert b"hunter2" not in b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
