"""The base of polled screens."""

from __future__ import annotations

import asyncio

from kgctl.tui.app import KgctlApp
from kgctl.tui.screens.polled import TICK_S, PolledScreen
from tests.kgctl.tui import group_snapshots, snapshots
from tests.kgctl.tui.prepared import PreparedFeed
from tests.kgctl.tui.waiting import until


def test_a_screen_has_one_timer() -> None:
    """Textual calls the handlers of all base classes itself; a handler that calls super would start a second timer."""
    feed = PreparedFeed(
        [snapshots.snapshot(snapshots.every_state())], {group_snapshots.GROUP: [group_snapshots.snapshot()]}
    )

    async def run() -> None:
        app = KgctlApp(feed, group=group_snapshots.GROUP)
        async with app.run_test():
            await until(app.ready.is_set)
            screens = [screen for screen in app.screen_stack if isinstance(screen, PolledScreen)]
            clocks = [[timer for timer in screen._timers if timer._interval == TICK_S] for screen in screens]
            assert [len(timers) for timers in clocks] == [1, 1]

    asyncio.run(run())
