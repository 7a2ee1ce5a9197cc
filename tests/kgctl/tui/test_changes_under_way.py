"""A change in progress: quitting asks twice, and an indeterminate outcome is not reported as a failure."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, cast

import pytest

from broker.protocol.errors import ErrorCode
from kgctl.client.admin.admin import Admin
from kgctl.client.net.errors import BrokerError, KgctlError
from kgctl.model.changes import MemberChange
from kgctl.tui.dialogs.plan import LEAVING, PlanDialog, Stage
from tests.kgctl.tui.dialogs import Scene as DialogScene
from tests.kgctl.tui.group_scene import Scene, opened
from tests.kgctl.tui.group_snapshots import GROUP, snapshot
from tests.kgctl.tui.prepared import PreparedFeed
from tests.kgctl.tui.waiting import until

T = TypeVar("T")
PLAN = [MemberChange(GROUP, "worker-1", None, "/10.0.0.1", "worker")]


class Planned(PreparedFeed):
    """Plans the removal of a member. The removal raises the outcome, or never answers if it is None."""

    def __init__(self, outcome: KgctlError | None) -> None:
        super().__init__([None], {GROUP: [snapshot()]})
        self._outcome, self._is_planned = outcome, False

    async def ask(self, question: Callable[[Admin], T]) -> T:
        if not self._is_planned:
            self._is_planned = True
            return cast(T, PLAN)
        if self._outcome is None:
            await asyncio.Event().wait()
        assert self._outcome is not None
        raise self._outcome


def removing(outcome: KgctlError | None, play: Callable[[Scene, PlanDialog], Awaitable[None]]) -> None:
    async def run() -> None:
        async with opened(Planned(outcome), GROUP) as scene:
            await scene.press("x")
            dialog: Any = scene.app.screen
            assert isinstance(dialog, PlanDialog)
            await until(lambda: dialog.stage is Stage.PLANNED)
            dialog.READING_S = 0.0
            await scene.press("down", "space")
            dialog.execute()
            await play(scene, dialog)

    asyncio.run(run())


@pytest.mark.parametrize("key", ["ctrl+c", "ctrl+q"])
def test_quitting_during_a_change_needs_a_second_key(key: str) -> None:
    async def play(scene: Scene, dialog: PlanDialog) -> None:
        await scene.press(key)
        assert scene.app.return_code is None
        assert [toast.message for toast in scene.app._notifications] == [LEAVING]
        await scene.pilot.press(key)
        await until(lambda: scene.app.return_code == 0)

    removing(None, play)


@pytest.mark.parametrize("code", [ErrorCode.REQUEST_TIMED_OUT, ErrorCode.UNKNOWN_SERVER_ERROR])
def test_an_error_that_says_nothing_of_the_change_leaves_the_outcome_open(code: ErrorCode) -> None:
    async def play(scene: Scene, dialog: PlanDialog) -> None:
        await until(lambda: dialog.stage is not Stage.CHANGING)
        text = DialogScene(cast(Any, scene.app), scene.pilot, dialog).text("message")
        assert "Part of the plan may have been executed" in text
        assert (dialog.stage, dialog.was_changed) == (Stage.REFUSED, True)

    removing(BrokerError(code, f"group {GROUP!r}"), play)


def test_a_refused_change_changes_nothing() -> None:
    async def play(scene: Scene, dialog: PlanDialog) -> None:
        await until(lambda: dialog.stage is not Stage.CHANGING)
        text = DialogScene(cast(Any, scene.app), scene.pilot, dialog).text("message")
        assert text.endswith("Nothing was changed.")
        assert (dialog.stage, dialog.was_changed) == (Stage.PLANNED, False)

    removing(BrokerError(ErrorCode.UNKNOWN_MEMBER_ID, f"group {GROUP!r}"), play)


class AnswersTheClosed(PreparedFeed):
    """Answers a dialog when its widgets have gone."""

    def __init__(self) -> None:
        super().__init__([None], {GROUP: [snapshot()]})
        self.dialog: PlanDialog | None = None

    async def ask(self, question: Callable[[Admin], T]) -> T:
        await until(lambda: self.dialog is not None and not self.dialog.query("#plan"))
        return cast(T, PLAN)


def test_a_plan_that_arrives_while_its_dialog_disappears_is_dropped() -> None:
    async def run() -> None:
        feed = AnswersTheClosed()
        async with opened(feed, GROUP) as scene:
            await scene.press("x")
            assert isinstance(scene.app.screen, PlanDialog)
            feed.dialog = scene.app.screen
            await scene.press("escape")
            await until(lambda: scene.app.screen is scene.screen)
            await scene.press("j")

    asyncio.run(run())
