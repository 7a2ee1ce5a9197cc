"""Every screen of the dashboard with every key that works everywhere, in ASCII, on a running broker."""

from __future__ import annotations

import asyncio

import pytest

from kgctl.tui.app import KgctlApp
from kgctl.tui.dialogs.copying import CopyMenu
from kgctl.tui.feed.cluster import ClusterFeed
from kgctl.tui.finder.screen import Finder
from kgctl.tui.places import PLACES
from kgctl.tui.screens.help import HelpScreen
from kgctl.tui.screens.polled import PolledScreen
from kgctl.tui.themes import CONTRAST
from kgctl.tui.widgets.frame.header import Header
from tests.kgctl.tui.quick_textual import differences
from tests.kgctl.tui.waiting import until


def text_of(app: KgctlApp) -> str:
    return "\n".join("".join(segment.text for segment in strip) for strip in app.screen._compositor.render_strips())


def test_every_screen_in_ascii_high_contrast_and_without_colours(
    feed: ClusterFeed, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")

    async def go() -> None:
        app = KgctlApp(feed, theme=CONTRAST.name)
        app.ascii_only = True
        async with app.run_test(size=(80, 24)) as pilot:
            await until(app.ready.is_set)
            await until(lambda: app.cluster is not None)
            for place in PLACES:
                await pilot.press("g", place.letter)
                await until(lambda: isinstance(app.screen, PolledScreen))
                screen = app.screen
                assert isinstance(screen, PolledScreen)
                await until(lambda screen=screen: screen.polling.last is not None or screen.polling.freshness.error)
                await pilot.pause()
                assert text_of(app).isascii(), place.name
                assert not differences(app), place.name
                assert (place.name in screen.query_one(Header).text) is (place.make is not None)
                await pilot.press("F")
                frozen = screen.polling.last is not None
                assert ("FROZEN" in screen.query_one(Header).text) is frozen, place.name
                await pilot.press("F", "B", "B")
                assert "FROZEN" not in screen.query_one(Header).text
                for key, kind in (("question_mark", HelpScreen), ("colon", Finder)):
                    await pilot.press(key)
                    assert isinstance(app.screen, kind), place.name
                    await pilot.pause()
                    assert text_of(app).isascii(), (place.name, key)
                    assert not differences(app), (place.name, key)
                    await pilot.press("escape")
                    assert app.screen is screen
                await pilot.press("y")
                if isinstance(app.screen, CopyMenu):
                    assert text_of(app).isascii()
                    await pilot.press("escape")
                assert app.screen is screen, place.name

    asyncio.run(go())
