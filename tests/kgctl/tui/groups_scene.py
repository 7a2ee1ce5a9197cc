"""The screen of all groups in an app with prepared snapshots."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from textual.pilot import Pilot
from textual.widgets import Static

from kgctl.client.net.errors import KgctlError
from kgctl.model.watched import Snapshot
from kgctl.tui.app import KgctlApp
from kgctl.tui.cluster_label import ClusterLabel
from kgctl.tui.screens.groups import GroupsScreen
from kgctl.tui.widgets.frame.header import Header
from kgctl.tui.widgets.groups.lines import FailedBrokers
from kgctl.tui.widgets.text.line import Line
from tests.kgctl.tui import snapshots
from tests.kgctl.tui.prepared import LOCAL, PreparedFeed
from tests.kgctl.tui.waiting import until


class Scene:
    """What the screen shows, and the keys a user presses."""

    def __init__(self, app: KgctlApp, pilot: Pilot[None]) -> None:
        self.app, self.pilot = app, pilot

    @property
    def screen(self) -> GroupsScreen:
        (screen,) = [one for one in self.app.screen_stack if isinstance(one, GroupsScreen)]
        return screen

    @property
    def names(self) -> list[str]:
        return [row.group for row in self.screen.rows.rows]

    @property
    def cursor(self) -> str | None:
        row = self.screen.rows.cursor_row
        return row.group if row else None

    def text(self, line: type[Line] | type[FailedBrokers]) -> str:
        found = self.screen.query_one(line)
        return str(found.content if isinstance(found, FailedBrokers) else found.render())

    @property
    def title(self) -> str:
        """The title of the table."""
        return self.screen.panel.title_text

    @property
    def status(self) -> str:
        return self.screen.query_one(Header).text

    @property
    def filter_note(self) -> str:
        return str(self.screen.query_one("#filter-note", Static).content)

    @property
    def table(self) -> str:
        height = self.app.size.height
        return "\n".join(self.screen.rows.render_line(y).text for y in range(height))

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def refresh(self) -> None:
        """Show the next prepared snapshot."""
        before = self.screen.polling.answers
        await self.press("ctrl+r")
        await until(lambda: self.screen.polling.answers > before)
        await self.pilot.pause()


Walk = Callable[[Scene], Awaitable[Any]]


def watching(
    found: Sequence[Snapshot | KgctlError | None],
    walk: Walk,
    size: tuple[int, int] = (120, 40),
    *,
    read_only: bool = False,
    cluster: ClusterLabel = LOCAL,
) -> None:
    async def run() -> None:
        feed = PreparedFeed(
            found, {name: [None] for one in found if isinstance(one, Snapshot) for name in one.groups}, cluster
        )
        app = KgctlApp(feed, clock=lambda: snapshots.NOW_S, read_only=read_only)
        async with app.run_test(size=size) as pilot:
            await until(app.ready.is_set)
            await pilot.pause()
            await walk(Scene(app, pilot))

    asyncio.run(run())
