"""An app with a single dialog, operated by keys; and feeds that delay answers or lack a request."""

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
from kgctl.tui.cluster_label import ClusterLabel
from kgctl.tui.dialogs.plan import PlanDialog, Stage
from kgctl.tui.feed.cluster import ClusterFeed
from kgctl.tui.feed.read import Read
from kgctl.tui.themes import THEMES
from kgctl.tui.widgets.table.rows import Rows
from tests.kgctl.tui.waiting import until

T = TypeVar("T")
SMALL, LARGE = (80, 24), (120, 40)
BUSY = (Stage.PLANNING, Stage.CHANGING)


class Host(App[None]):
    """An app with nothing but the dialog; `answers` has its results."""

    CSS = "Screen { background: $surface; color: $foreground; }"

    def __init__(self) -> None:
        super().__init__()
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = THEMES[0].name
        self.answers: list[bool | None] = []


class Scene:
    """What the dialog shows, and what a user does."""

    def __init__(self, app: Host, pilot: Pilot[None], dialog: PlanDialog) -> None:
        self.app, self.pilot, self.dialog = app, pilot, dialog

    async def press(self, *keys: str) -> None:
        """Press keys one by one and wait for the plan or the outcome."""
        await self.pilot.press(*keys)
        await self.settled()

    async def type(self, text: str) -> None:
        await self.press(*(NAMES.get(char, char) for char in text))

    async def paste(self, text: str) -> None:
        """Paste text, as a terminal does."""
        assert self.dialog.focused is not None
        self.dialog.focused.post_message(events.Paste(text))
        await self.settled()

    async def settled(self) -> None:
        await self.pilot.pause()
        await until(lambda: self.dialog.stage not in BUSY)
        await self.pilot.pause()

    async def focus(self, widget: str) -> None:
        """Press Tab until the widget has the focus; fail if it does not get it."""
        for _ in range(12):
            if self.dialog.focused is not None and self.dialog.focused.id == widget:
                return
            await self.pilot.press("tab")
        raise AssertionError(f"Tab does not reach {widget}")

    def text(self, widget: str) -> str:
        return str(self.dialog.query_one(f"#{widget}", Static).content)

    def rows(self) -> list[Any]:
        return list(self.dialog.query_one("#plan", Rows).rows)

    def button(self, name: str = "execute") -> Button:
        return self.dialog.query_one(f"#{name}", Button)

    def screen(self) -> str:
        """Everything on the screen, as text."""
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
    """The dialog on a terminal of this size, once it shows its first plan or an error."""
    app = Host()
    # Tests read fast.
    dialog.READING_S = 0.0
    async with app.run_test(size=size) as pilot:
        app.push_screen(dialog, app.answers.append)
        scene = Scene(app, pilot, dialog)
        await scene.settled()
        yield scene


def cluster_feed(bootstrap: str) -> ClusterFeed:
    return ClusterFeed(ConnectionSettings(parse(bootstrap), timeout=20))


class AnswersFeed:
    """A feed that answers every question with the same prepared value."""

    cluster = ClusterLabel("127.0.0.1:9092")

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    async def read(self, read: Read[T]) -> T:
        raise NotImplementedError

    async def ask(self, question: Callable[[Admin], T]) -> T:
        answer: T = self._answer
        return answer

    def close(self) -> None:
        pass


class GatedFeed(ClusterFeed):
    """Counts questions, and delays them while the gate is closed."""

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
    """The cluster, as if its brokers could not trigger a rebalance without eviction."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(ConnectionSettings(parse(bootstrap), timeout=20))
        self._other = _WithoutTrigger(parse(bootstrap))

    async def ask(self, question: Callable[[Admin], T]) -> T:
        def without(admin: Admin) -> T:
            admin.cluster = self._other
            return question(admin)

        return await super().ask(without)
