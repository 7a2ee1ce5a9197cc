"""Recordings of prepared incidents, and the frames of the dashboard that recorded them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from kgctl.model.groups import GroupDescription
from kgctl.model.watched import GroupSnapshot, Snapshot
from kgctl.tui.app import KgctlApp
from kgctl.tui.feed.recording import RecordingFeed, record_to
from kgctl.tui.feed.replay import Recording, ReplayFeed
from kgctl.tui.replay.app import ReplayApp
from kgctl.tui.screens.group import GroupScreen
from tests.kgctl.tui import snapshots
from tests.kgctl.tui.prepared import PreparedFeed
from tests.kgctl.tui.waiting import until

SIZE = (120, 40)
GROUP = "tracking"


def incident(count: int = 12, apart_s: float = 10.0) -> list[Snapshot]:
    """Two groups fall behind, one rebalances for a while, one is created and one deleted."""
    first = [
        *snapshots.every_state(),
        snapshots.group("stalled-at-a-poison-record", lags=(40, 0, 0), members=3),
        snapshots.group(GROUP, lags=(50_000, 50_000), members=2),
    ]
    found = []
    for number in range(count):
        groups = {one.group: one for one in snapshots.later(first, number * apart_s)}
        if 3 <= number < 5:
            groups[GROUP] = replace(groups[GROUP], state="PreparingRebalance")
        if number >= 6:
            groups["new"] = snapshots.group("new")
        if number >= 8:
            del groups["hourly-report"]
        found.append(snapshots.snapshot(groups.values(), number * apart_s))
    return found


def one_group(everything: Snapshot, after_s: float = 1.0) -> GroupSnapshot:
    group: GroupDescription = everything.groups[GROUP]
    return GroupSnapshot(everything.at_s + after_s, everything.wall_ms + int(after_s * 1000), group)


class Clock:
    now_s = snapshots.NOW_S

    def __call__(self) -> float:
        return self.now_s


def shown(app: KgctlApp, above: int) -> str:
    """The lines of the terminal between these and the line of keys, which differ in a replay."""
    return "\n".join(strip.text.rstrip() for strip in app.screen._compositor.render_strips()[above:-1])


async def record(path: Path, found: Sequence[Snapshot], group_at: int | None = None) -> list[str]:
    """Record these snapshots of all groups; open GROUP after so many of them. The screen after each answer that it shows."""
    clock, frames = Clock(), []
    prepared = PreparedFeed(found, {GROUP: [one_group(one) for one in found[group_at or 0 :]]})
    feed = record_to(path, prepared)
    assert isinstance(feed, RecordingFeed)
    feed._clock = clock
    app = KgctlApp(feed, interval_s=300, read_only=True, clock=clock)
    async with app.run_test(size=SIZE) as pilot:
        for number, one in enumerate(found):
            clock.now_s = one.at_s
            if number:
                app.background.polling.now()
            await until(lambda number=number: app.background.polling.answers > number)
            if group_at is not None and number >= group_at:
                clock.now_s = one.at_s + 1
                if number == group_at:
                    app.open_group(GROUP)
                    await until(lambda: isinstance(app.screen, GroupScreen) and app.screen.polling.answers)
                else:
                    before = app.screen.polling.answers
                    app.screen.polling.now()
                    await until(lambda before=before: app.screen.polling.answers > before)
                app.screen.tick()
            await pilot.pause()
            frames.append(shown(app, 1))
    feed.close()
    return frames


async def at_place(app: ReplayApp, pilot, place: int) -> str:
    """The screen once it shows this place of the recording."""
    await until(lambda: app.player.place == place)
    polling = app._polled()[-1].polling
    await until(lambda: app.background.polling.idle and polling.idle)
    await pilot.pause()
    return shown(app, 2)


def replaying(path: Path) -> ReplayApp:
    return ReplayApp(ReplayFeed(Recording(path)))
