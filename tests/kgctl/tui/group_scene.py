"""The screen of one group in an app with a prepared feed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from textual.pilot import Pilot

from kgctl.tui.app import KgctlApp
from kgctl.tui.feed.cluster import ClusterFeed
from kgctl.tui.feed.groups import OneGroup
from kgctl.tui.feed.protocol import Feed
from kgctl.tui.screens.group import GroupScreen
from tests.kgctl.tui.group_snapshots import AT_S
from tests.kgctl.tui.prepared import PreparedFeed
from tests.kgctl.tui.waiting import until

SMALL, MIDDLE, LARGE = (80, 24), (120, 40), (200, 60)


class Scene:
    """What the screen shows, and the keys a user presses."""

    def __init__(self, app: KgctlApp, pilot: Pilot[None]) -> None:
        self.app, self.pilot = app, pilot

    @property
    def screen(self) -> GroupScreen:
        (found,) = [screen for screen in self.app.screen_stack if isinstance(screen, GroupScreen)]
        return found

    @property
    def text(self) -> str:
        """Everything on the terminal."""
        return "\n".join(strip.text for strip in self.app.screen._compositor.render_strips())

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def refresh(self) -> None:
        """Show the next prepared snapshot."""
        feed = self.app.feed
        assert isinstance(feed, PreparedFeed)
        read = OneGroup(self.screen.group)
        before = feed.asked(read)
        await self.pilot.press("ctrl+r")
        await until(lambda: feed.asked(read) > before)
        await self.pilot.pause()

    async def see(self, words: str) -> None:
        await until(lambda: words in self.text)


@asynccontextmanager
async def opened(
    feed: Feed, group: str, size: tuple[int, int] = SMALL, *, interval_s: float = 300.0, **more: bool
) -> AsyncIterator[Scene]:
    clocks = {} if isinstance(feed, ClusterFeed) else {"clock": lambda: AT_S}
    app = KgctlApp(feed, group=group, interval_s=interval_s, **clocks, **more)  # type: ignore[arg-type]
    async with app.run_test(size=size) as pilot:
        await until(app.ready.is_set)
        await pilot.pause()
        yield Scene(app, pilot)
