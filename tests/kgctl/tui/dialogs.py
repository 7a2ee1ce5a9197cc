"""A dialog on its own in a small app, opened and answered by keys; and feeds that hold answers back or lack a request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from textual import events
from textual.app import App
from textual.pilot import Pilot
from textual.widgets import Button, Static

from broker.protocol.messages.trigger_rebalance import TriggerRebalanceRequest
from kgctl.client.admin.admin import Admin
from kgctl.client.net.bootstrap import parse
from kgctl.client.net.cluster import Cluster
from kgctl.client.net.connector import ConnectionSettings
from kgctl.client.net.steps import Endpoint
from kgctl.tui.feed import ClusterFeed
from kgctl.tui.screens.plan import PlanDialog, Stage
from kgctl.tui.themes import THEMES
from kgctl.tui.widgets.rows import Rows
from tests.kgctl.tui.waiting import until

T = TypeVar("T")
SMALL, LARGE = (80, 24), (120, 40)
BUSY = (Stage.PLANNING, Stage.CHANGING)


class Host(App[None]):
    """Nothing but the dialog; `answers` is what it ended with."""

    CSS = "Screen { background: $surface; color: $foreground; }"

    def __init__(self) -> None:
        super().__init__()
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = THEMES[0].name
        self.answers: list[bool | None] = []


class Scene:
    """What a person does at the dialog, and sees there."""

    def __init__(self, app: Host, pilot: Pilot[None], dialog: PlanDialog) -> None:
        self.app, self.pilot, self.dialog = app, pilot, dialog

    async def press(self, *keys: str) -> None:
        """Keys one by one, and then the plan or the outcome that they lead to."""
        await self.pilot.press(*keys)
        await self.settled()

    async def type(self, text: str) -> None:
        await self.press(*(NAMES.get(char, char) for char in text))

    async def paste(self, text: str) -> None:
        """As a terminal gives what a person pastes into it."""
        assert self.dialog.focused is not None
        self.dialog.focused.post_message(events.Paste(text))
        await self.settled()

    async def settled(self) -> None:
        await self.pilot.pause()
        await until(lambda: self.dialog.stage not in BUSY)
        await self.pilot.pause()

    async def focus(self, widget: str) -> None:
        """By Tab, as a person would; fails if Tab does not lead there."""
        for _ in range(12):
            if self.dialog.focused is not None and self.dialog.focused.id == widget:
                return
            await self.pilot.press("tab")
        raise AssertionError(f"Tab does not lead to {widget}")

    def text(self, widget: str) -> str:
        return str(self.dialog.query_one(f"#{widget}", Static).content)

    def rows(self) -> list[Any]:
        return list(self.dialog.query_one(Rows).rows)

    def button(self, name: str = "execute") -> Button:
        return self.dialog.query_one(f"#{name}", Button)

    def screen(self) -> str:
        """All that is drawn, as text."""
        width, height = self.dialog.size
        return "\n".join(
            "".join(segment.text for segment in line)
            for line in self.dialog._compositor.render_strips()[:height]
            if width
        )


NAMES = {
    "-": "minus",
    ":": "colon",
    ",": "comma",
    " ": "space",
    ".": "full_stop",
    "/": "slash",
    "_": "underscore",
    "+": "plus",
    "\\": "backslash",
    "[": "left_square_bracket",
    "]": "right_square_bracket",
}


@asynccontextmanager
async def opened(dialog: PlanDialog, size: tuple[int, int] = SMALL) -> AsyncIterator[Scene]:
    """The dialog on a terminal of this size, with its first plan or the reason why there is none."""
    app = Host()
    async with app.run_test(size=size) as pilot:
        app.push_screen(dialog, app.answers.append)
        scene = Scene(app, pilot, dialog)
        await scene.settled()
        yield scene


def cluster_feed(bootstrap: str) -> ClusterFeed:
    return ClusterFeed(ConnectionSettings(parse(bootstrap), timeout=20))


class GatedFeed(ClusterFeed):
    """Counts questions; they wait before they are asked while the gate is closed."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(ConnectionSettings(parse(bootstrap), timeout=20))
        self.gate = asyncio.Event()
        self.gate.set()
        self.asked = 0

    async def ask(self, question: Callable[[Admin], T]) -> T:
        self.asked += 1
        await self.gate.wait()
        return await super().ask(question)


class _WithoutTrigger(Cluster):
    def range_of(self, endpoint: Endpoint, api_key: int) -> tuple[int, int] | None:
        return None if api_key == TriggerRebalanceRequest.API_KEY else super().range_of(endpoint, api_key)


class OtherBrokerFeed(ClusterFeed):
    """The cluster as one whose brokers know no rebalance without eviction."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(ConnectionSettings(parse(bootstrap), timeout=20))
        self._other = _WithoutTrigger(parse(bootstrap))

    async def ask(self, question: Callable[[Admin], T]) -> T:
        def without(admin: Admin) -> T:
            admin.cluster = self._other
            return question(admin)

        return await super().ask(without)
