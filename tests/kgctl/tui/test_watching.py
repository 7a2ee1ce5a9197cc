"""What all screens have that watch something."""

from __future__ import annotations

import asyncio

from kgctl.tui.app import KgctlApp
from kgctl.tui.screens.watching import TICK_S, Watching
from tests.kgctl.tui import group_looks, looks
from tests.kgctl.tui.prepared import PreparedFeed
from tests.kgctl.tui.waiting import until


def test_a_screen_has_one_clock() -> None:
    """Textual calls the handlers of all classes of a screen by itself: one that calls its super's mounts it twice."""
    feed = PreparedFeed([looks.look(looks.every_state())], {group_looks.GROUP: [group_looks.look()]})

    async def run() -> None:
        app = KgctlApp(feed, group=group_looks.GROUP)
        async with app.run_test():
            await until(app.heard.is_set)
            screens = [screen for screen in app.screen_stack if isinstance(screen, Watching)]
            clocks = [[timer for timer in screen._timers if timer._interval == TICK_S] for screen in screens]
            assert [len(timers) for timers in clocks] == [1, 1]

    asyncio.run(run())
