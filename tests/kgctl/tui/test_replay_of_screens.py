"""Brokers, contexts and transactions in a recording: they show what they showed then, and say so if they were not recorded."""

from __future__ import annotations

import asyncio
from pathlib import Path

from kgctl.model.watched_brokers import BrokersSnapshot
from kgctl.tui.app import KgctlApp
from kgctl.tui.feed.brokers import Brokers, Details
from kgctl.tui.feed.recording import RecordingFeed, record_to
from kgctl.tui.feed.transactions import Hanging, Transactions
from kgctl.tui.screens.polled import PolledScreen
from kgctl.tui.widgets.frame.unreachable import Unreachable
from tests.kgctl.tui import snapshots, test_brokers_screen, test_contexts_screen, test_transactions_screen
from tests.kgctl.tui.prepared import PreparedFeed
from tests.kgctl.tui.recorded import SIZE, Clock, replaying, shown
from tests.kgctl.tui.waiting import until

TALLER = (SIZE[0], SIZE[1] + 1)
FOUND: BrokersSnapshot = test_brokers_screen.KAFKA
READS = test_contexts_screen.READS | {
    Brokers(): [FOUND],
    Details(): [test_brokers_screen.KAFKA_DETAILS],
    Transactions(): [test_transactions_screen.SNAPSHOT],
    Hanging(): [test_transactions_screen.HANGS],
}


NAMES = {"b": "Brokers", "x": "Transactions", "c": "Contexts"}


async def opened(app: KgctlApp, pilot, letter: str, *keys: str) -> str:
    """The screen with this letter once nothing changes any more."""
    await pilot.press("g", letter)
    name = NAMES[letter]
    await until(lambda: isinstance(app.screen, PolledScreen) and app.screen.place == name and app.screen.focused)
    await pilot.press("home", *keys)
    before = ""
    while (now := shown(app, 2 if app.replay is not None else 1)) != before:
        before = now
        await asyncio.sleep(0.2)
        await pilot.pause()
    return now


def test_brokers_contexts_and_transactions_replay_as_they_were_shown(tmp_path: Path) -> None:
    path, clock = tmp_path / "incident", Clock()

    async def go() -> None:
        everything = snapshots.snapshot(test_transactions_screen.GROUPS)
        feed = record_to(path, PreparedFeed([everything], reads=READS))
        assert isinstance(feed, RecordingFeed)
        feed._clock = clock
        app = KgctlApp(feed, interval_s=300, clock=clock)
        live = {}
        async with app.run_test(size=SIZE) as pilot:
            await until(lambda: app.cluster is not None)
            for letter, keys in (("b", ("j",)), ("x", ("j", "j")), ("c", ("j", "c"))):
                live[letter] = await opened(app, pilot, letter, *keys)
        feed.close()
        replay = replaying(path)
        async with replay.run_test(size=TALLER) as pilot:
            await until(replay.ready.is_set)
            await pilot.press("right_curly_bracket")
            await until(lambda: replay.player.place == len(replay.player._feed.recording.frames) - 1)
            for letter, keys in (("b", ("j",)), ("x", ("j", "j")), ("c", ("j",))):
                assert await opened(replay, pilot, letter, *keys) == live[letter]
            # At the start nothing of this had been read yet.
            await pilot.press("left_curly_bracket")
            await until(lambda: replay.player.place == 0)
            await pilot.press("g", "x")
            await until(lambda: "The recording has this from" in str(replay.screen.query_one(Unreachable).render()))

    asyncio.run(go())
