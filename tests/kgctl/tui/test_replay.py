"""Recordings of the dashboard and their replay."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from kgctl.client.net.errors import Precondition
from kgctl.tui.feed.groups import OneGroup
from kgctl.tui.feed.read import NotRecorded
from kgctl.tui.feed.replay import Recording, ReplayFeed
from tests.kgctl.tui.recorded import GROUP, SIZE, at_place, incident, record, replaying
from tests.kgctl.tui.waiting import until

TALLER = (SIZE[0], SIZE[1] + 1)


def test_a_recorded_incident_replays_frame_by_frame(tmp_path: Path) -> None:
    path = tmp_path / "incident"

    async def go() -> None:
        live = await record(path, incident())
        app = replaying(path)
        async with app.run_test(size=TALLER) as pilot:
            await until(app.ready.is_set)
            for place, frame in enumerate(live):
                assert await at_place(app, pilot, place) == frame
                await pilot.press("full_stop")

    asyncio.run(go())


def test_any_sequence_of_steps_shows_what_going_there_directly_shows(tmp_path: Path) -> None:
    path = tmp_path / "incident"
    keys = {"full_stop": 1, "comma": -1, "greater_than_sign": 10, "less_than_sign": -10}
    randomness = random.Random(7)

    async def go() -> None:
        live = await record(path, incident(30, 4.0))
        app = replaying(path)
        async with app.run_test(size=TALLER) as pilot:
            await until(app.ready.is_set)
            place = 0
            for _ in range(25):
                key = randomness.choice(list(keys))
                await pilot.press(key)
                place = min(max(0, place + keys[key]), len(live) - 1)
                assert await at_place(app, pilot, place) == live[place]

    asyncio.run(go())


def test_an_opened_group_replays_as_it_was_shown(tmp_path: Path) -> None:
    path = tmp_path / "incident"

    async def go() -> None:
        live = await record(path, incident(), group_at=2)
        app = replaying(path)
        async with app.run_test(size=TALLER) as pilot:
            await until(app.ready.is_set)
            last = len(app.feed.recording.frames) - 1
            # From the third snapshot on there are two frames each: all groups, and the group.
            shown_at = [number if number < 2 else 2 * number - 1 for number in range(len(live))]
            assert shown_at[-1] == last
            app.open_group(GROUP)
            await until(lambda: app.screen.is_mounted and app.screen.polling.answers)
            for number in (3, 4, 11, 5, 2, 10):
                app.player.to(shown_at[number])
                assert await at_place(app, pilot, shown_at[number]) == live[number]

    asyncio.run(go())


def test_events_are_found_forwards_and_backwards(tmp_path: Path) -> None:
    path = tmp_path / "incident"

    async def go() -> None:
        await record(path, incident())
        app = replaying(path)
        async with app.run_test(size=TALLER) as pilot:
            await until(lambda: app._observer.events is not None)
            places = []
            for _ in range(20):
                await pilot.press("n")
                places.append(app.player.place)
            events = [place for place in app._observer.events if place > 0]
            assert {6, 8} <= set(events)
            assert places[: len(events)] == events
            assert "No later event." in app.replay_details
            await pilot.press("right_curly_bracket", "N")
            assert app.player.place == max(place for place in events if place < 11)
            await pilot.press("left_curly_bracket")
            assert app.player.place == 0

    asyncio.run(go())


def test_a_recording_plays_to_its_end_and_says_where_it_is(tmp_path: Path) -> None:
    path = tmp_path / "incident"

    async def go() -> None:
        await record(path, incident(4, 0.05))
        app = replaying(path)
        async with app.run_test(size=TALLER) as pilot:
            await until(app.ready.is_set)
            assert "paused, 1x" in app.replay_details
            await pilot.press("minus", "space")
            await until(lambda: app.player.place == 3 and not app.player.is_playing)
            assert app.replay.endswith("4/4")
            assert "paused, 0.5x" in app.replay_details

    asyncio.run(go())


def test_nothing_can_be_changed_in_a_replay(tmp_path: Path) -> None:
    path = tmp_path / "incident"

    async def go() -> None:
        await record(path, incident(2))
        app = replaying(path)
        async with app.run_test(size=TALLER) as pilot:
            await until(app.ready.is_set)
            before = list(app.screen_stack)
            await pilot.press("r", "b", "x")
            assert app.screen_stack == before
            with pytest.raises(Precondition, match="nothing can be changed"):
                await app.feed.ask(lambda admin: None)

    asyncio.run(go())


def test_a_read_that_was_not_recorded_says_so(tmp_path: Path) -> None:
    path = tmp_path / "incident"

    async def go() -> None:
        await record(path, incident(2))
        with pytest.raises(NotRecorded, match="it was not on the screen"):
            await ReplayFeed(Recording(path)).read(OneGroup("never"))

    asyncio.run(go())
