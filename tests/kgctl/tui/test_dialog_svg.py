"""SVG snapshots of dialogs, with prepared answers."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from kgctl.journal.taking_back import TakingBack
from kgctl.model.changes import FAILED, GroupChange, MemberChange, ResetPlan, ResetRow
from kgctl.model.failure import RowError
from kgctl.model.plans import OFFSETS, ChangeRow, GroupPlan, JournalRow, Move, Plan
from kgctl.tui.dialogs.deletion import DeleteDialog
from kgctl.tui.dialogs.plan import PlanDialog, Stage
from kgctl.tui.dialogs.removal import RemoveMemberDialog
from kgctl.tui.dialogs.reset import ResetDialog
from kgctl.tui.dialogs.undo import UndoDialog
from tests.kgctl.tui.dialogs import BUSY, LARGE, SMALL, AnswersFeed, Host
from tests.kgctl.tui.test_reset import STRATEGIES
from tests.kgctl.tui.waiting import until

GROUPS = ["billing", "checkout", "fraud"]
ACTIVE = RowError("PRECONDITION", "Assignments can only be reset if the group 'fraud' is inactive")
DAY_MS = 86_400_000


def resets() -> list[ResetPlan]:
    rows = {
        name: tuple(ResetRow(name, "orders", number, old, 0, -old) for number, old in enumerate((60, 50)))
        for name in GROUPS[:2]
    }
    return [*(ResetPlan(name, "Empty", rows[name]) for name in rows), ResetPlan("fraud", "Stable", (), error=ACTIVE)]


def members() -> list[MemberChange]:
    return [
        MemberChange("checkout", "checkout-1-7d0f", None, "/10.0.0.1", "checkout"),
        MemberChange("checkout", "checkout-2-93ab", "two", "/10.0.0.2", "checkout"),
        MemberChange("fraud", "fraud-1-11aa", None, "/10.0.0.3", "fraud"),
    ]


def deletions() -> tuple[list[GroupChange], dict[str, int]]:
    busy = RowError("NON_EMPTY_GROUP", "group 'fraud': the group has active members; stop them first")
    rows = [
        GroupChange("billing", "Empty"),
        GroupChange("checkout", "Empty"),
        GroupChange("fraud", "Stable", FAILED, busy),
    ]
    return rows, {"billing": 2, "checkout": 12}


def change(number: int, verb: str, groups: Sequence[str], **options: Any) -> JournalRow:
    at_ms = time.time_ns() // 1_000_000 - number * DAY_MS - 1000
    name = f"20260131-12000{number}-1a2b"
    return JournalRow(
        name, at_ms, verb, tuple(groups), "done", "ada", "laptop", "c", "127.0.0.1:9092", None, "kgctl ...", **options
    )


class UndoFeed(AnswersFeed):
    """Answers with the changes, then with the plan, in turns."""

    def __init__(self) -> None:
        super().__init__(None)
        self._changes = [
            change(1, "delete", GROUPS[:2]),
            change(2, "reset-offsets", ["fraud"], undone_by="20260131-130000-99ff"),
            change(3, "topics delete", [], items=("topic orders",)),
        ]
        moves = {name: tuple(Move("orders", n, None, old) for n, old in ((0, 60), (1, 50))) for name in GROUPS[:2]}
        rows = [
            ChangeRow(name, OFFSETS, move.topic, move.partition, None, None, move.new_offset)
            for name in moves
            for move in moves[name]
        ]
        plan = Plan("", 1, "undo", "c", 0, tuple(GroupPlan(name, OFFSETS, None, moves=moves[name]) for name in moves))
        self._plan = TakingBack(self._changes[0], rows, plan=plan)

    async def ask(self, question: Callable[[Any], Any]) -> Any:
        return self._changes if getattr(question, "__name__", "") == "changes_of" else self._plan


EARLIEST = ("enter", "home", *["down"] * (STRATEGIES.index("earliest") + 1), "enter")


@pytest.mark.parametrize(
    ("make", "size", "keys"),
    [
        pytest.param(lambda: ResetDialog(AnswersFeed(resets()), "billing"), SMALL, (), id="reset-opens"),
        pytest.param(lambda: ResetDialog(AnswersFeed(resets()), GROUPS), SMALL, EARLIEST, id="resets-small"),
        pytest.param(lambda: ResetDialog(AnswersFeed(resets()), GROUPS), LARGE, EARLIEST, id="resets"),
        pytest.param(
            lambda: RemoveMemberDialog(AnswersFeed(members()), GROUPS, member_id="fraud-1-11aa"),
            LARGE,
            ("down", "home", "space"),
            id="removal",
        ),
        pytest.param(lambda: DeleteDialog(AnswersFeed(deletions()), GROUPS), LARGE, (), id="deletion"),
        pytest.param(lambda: UndoDialog(UndoFeed()), LARGE, ("enter",), id="undo"),
        pytest.param(lambda: UndoDialog(UndoFeed()), SMALL, ("down", "enter"), id="undone-small"),
    ],
)
def test_dialogs(snap_compare, make: Callable[[], PlanDialog], size: tuple[int, int], keys: Sequence[str]) -> None:
    app, dialog = Host(), make()

    async def go(pilot) -> None:
        app.push_screen(dialog, app.answers.append)
        for step in ((), keys):
            await pilot.press(*step)
            await pilot.pause()
            await until(lambda: dialog.is_mounted and dialog.stage not in BUSY)
            await pilot.pause()
        assert dialog.stage is not Stage.CHANGED

    assert snap_compare(app, terminal_size=size, run_before=go)
