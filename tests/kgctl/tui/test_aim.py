"""Actions never aim anew: a row that goes stays under the cursor; and why actions are disabled."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kgctl.model.watched import Snapshot
from kgctl.tui.cluster_label import ClusterLabel
from kgctl.tui.dialogs.deletion import DeleteDialog
from kgctl.tui.dialogs.offset_deletion import DeleteOffsetsDialog
from kgctl.tui.dialogs.plan import PlanDialog
from kgctl.tui.dialogs.rebalance import RebalanceDialog
from kgctl.tui.dialogs.undo import UndoDialog
from kgctl.tui.hindrance import OPTION
from tests.kgctl.tui import snapshots
from tests.kgctl.tui.groups_scene import Scene, watching
from tests.kgctl.tui.waiting import until

PROD = ClusterLabel("kafka-1:9093", "prod", "red", options=("--context", "prod"))
KEYS = ("r", "b", "x", "d", "D")


def of(*names: str, after_s: float = 0.0) -> Snapshot:
    return snapshots.snapshot([snapshots.group(name, lags=(3, 4)) for name in names], after_s=after_s)


def toasts(scene: Scene) -> list[str]:
    return [toast.message for toast in scene.app._notifications]


def test_a_group_that_goes_stays_under_the_cursor_and_nothing_acts_on_it() -> None:
    async def walk(scene: Scene) -> None:
        await scene.press("N", "j")
        assert scene.cursor == "b"
        await scene.refresh()
        assert scene.cursor == "b"
        assert scene.names == ["a", "b", "c"]
        line = next(line for line in scene.table.splitlines() if line.strip().startswith("b "))
        assert "gone" in line
        assert scene.title.split("Groups ")[1].startswith("2 ")
        for key in KEYS:
            await scene.press(key)
            assert scene.app.screen is scene.screen
        assert set(toasts(scene)) == {"b is gone. Move the cursor to choose another one."}
        await scene.refresh()
        assert scene.cursor == "b"
        assert "gone" in scene.table
        await scene.refresh()
        assert scene.names == ["a", "b", "c"]
        assert "gone" not in scene.table
        await scene.refresh()
        await scene.press("j")
        assert (scene.cursor, scene.names) == ("c", ["a", "c"])

    watching([of("a", "b", "c"), of("a", "c"), of("a", "c"), of("a", "b", "c"), of("a", "c")], walk)


def test_a_group_that_stops_to_match_the_filter_stays_and_can_be_acted_on() -> None:
    lagging = snapshots.snapshot([snapshots.group("a", silent_ms=40_000), snapshots.group("b", silent_ms=40_000)])

    async def walk(scene: Scene) -> None:
        await scene.press("f", "N")
        assert (scene.cursor, scene.names) == ("a", ["a", "b"])
        await scene.refresh()
        assert scene.cursor == "a"
        assert "no match now" in scene.table
        await scene.press("d")
        dialog: Any = scene.app.screen
        assert isinstance(dialog, DeleteDialog)
        assert dialog.groups == ("a",)
        await scene.press("escape")
        await until(lambda: scene.app.screen is scene.screen)
        await scene.press("f")
        assert "no match now" not in scene.table

    watching([lagging, of("a", "b", after_s=2.0)], walk)


@pytest.mark.parametrize(("key", "dialog"), [("d", DeleteDialog), ("D", DeleteOffsetsDialog)])
def test_marked_groups_are_acted_on_together_also_one_that_is_gone(key: str, dialog: type[PlanDialog]) -> None:
    async def walk(scene: Scene) -> None:
        await scene.press("N", "space", "space")
        await scene.refresh()
        await scene.press(key)
        found: Any = scene.app.screen
        assert isinstance(found, dialog)
        assert set(found.groups) == {"a", "b"}

    watching([of("a", "b", "c"), of("b", "c")], walk)


def test_what_is_typed_at_once_after_the_key_of_a_dialog_is_its_reason() -> None:
    async def walk(scene: Scene) -> None:
        await scene.pilot.press("b", *"busy")
        dialog = scene.app.screen
        assert isinstance(dialog, RebalanceDialog)
        await until(lambda: dialog.reason == "busy")
        assert scene.app.clipboard == ""

    watching([of("a")], walk)


@pytest.mark.parametrize(
    ("cluster", "read_only", "reason"),
    [
        (replace(PROD, read_only=True), False, "Read-only: the context 'prod' forbids changes."),
        (replace(PROD, read_only=True), True, OPTION),
    ],
    ids=["context", "option"],
)
def test_a_key_that_is_disabled_says_why(cluster: ClusterLabel, read_only: bool, reason: str) -> None:
    async def walk(scene: Scene) -> None:
        for key in (*KEYS, "U"):
            await scene.press(key)
            assert scene.app.screen is scene.screen
            assert toasts(scene)[-1] == reason
        assert len(toasts(scene)) == len(KEYS) + 1

    watching([of("a")], walk, read_only=read_only, cluster=cluster)


def test_a_key_opens_the_undo_of_the_journal() -> None:
    async def walk(scene: Scene) -> None:
        await scene.press("U")
        assert isinstance(scene.app.screen, UndoDialog)

    watching([of("a")], walk)
