"""The finder: its ranking, and what it opens."""

from __future__ import annotations

import asyncio

import pytest
from textual import events
from textual.widgets import Input

from kgctl.tui.app import KgctlApp
from kgctl.tui.feed.topic_names import Names, TopicNames
from kgctl.tui.finder.ranking import Match, Source, find, match
from kgctl.tui.finder.screen import Finder
from kgctl.tui.screens.events import EventsScreen
from kgctl.tui.screens.group import GroupScreen
from kgctl.tui.screens.help import HelpScreen
from kgctl.tui.screens.topics import TopicsScreen
from tests.kgctl.tui import snapshots
from tests.kgctl.tui.groups_scene import Scene, watching
from tests.kgctl.tui.prepared import PreparedFeed
from tests.kgctl.tui.waiting import until


def groups(*names: str) -> Source:
    return Source.of("group", names, lambda place: None)


def found(typed: str, *sources: Source) -> list[str]:
    return [one.name for one in find(typed, sources, 100)[0]]


# ---- ranking


def test_exact_names_come_first_then_prefixes_words_parts_and_letters() -> None:
    names = ["o-r-d-e-r-s", "reorders", "eu-orders", "orders-eu", "orders", "order"]
    assert found("ORDERS", groups(*names)) == ["orders", "orders-eu", "eu-orders", "reorders", "o-r-d-e-r-s"]


@pytest.mark.parametrize(
    ("typed", "name", "expected"),
    [
        ("sb", "static-billing", (Match.LETTERS, 7)),
        ("ill b", "billing", None),
        ("bill", "xbill-bill", (Match.WORD, 0)),
        ("a b", "a b", (Match.EXACT, 0)),
        ("x", "", None),
    ],
)
def test_a_name_matches_in_one_way(typed: str, name: str, expected: object) -> None:
    assert match(typed, name) == expected


def test_among_equals_the_first_source_wins_and_then_short_names() -> None:
    screens, others = groups("Topics"), groups("topics-of-all", "topics-b", "topics-a")
    assert found("topi", screens, others) == ["Topics", "topics-a", "topics-b", "topics-of-all"]


def test_no_more_than_wanted_are_found_and_all_are_counted() -> None:
    source = groups(*(f"many-{number}" for number in range(500)))
    best, count = find("many", [source], 10)
    assert (len(best), count) == (10, 500)
    assert find("", [source], 10)[1] == 500


# ---- the screen


def finder(scene: Scene) -> Finder:
    assert isinstance(scene.app.screen, Finder)
    return scene.app.screen


def names(scene: Scene) -> list[tuple[str, str]]:
    return [(row.source.kind, row.name) for row in finder(scene).rows.rows]


SOME = [snapshots.snapshot([*snapshots.every_state(), *snapshots.hostile()])]


def test_a_group_opens_by_a_part_of_its_name_typed_in_one_go() -> None:
    async def walk(scene: Scene) -> None:
        # As a paste or a fast typist sends them: before the finder has the focus. The `b` must not open a dialog.
        for key, character in [("colon", ":"), *((letter, letter) for letter in "billi")]:
            scene.app.post_message(events.Key(key, character))
        await until(lambda: isinstance(scene.app.screen, Finder) and finder(scene).query_one(Input).value == "billi")
        await scene.press("enter")
        await until(lambda: isinstance(scene.app.screen, GroupScreen))
        assert isinstance(scene.app.screen, GroupScreen)
        assert scene.app.screen.group == "billing"

    watching(SOME, walk)


def test_a_topic_opens_whether_or_not_a_group_reads_it() -> None:
    async def run() -> None:
        reads = {TopicNames(): [Names(("orders", "orders-archive"))]}
        app = KgctlApp(PreparedFeed(SOME, reads=reads), clock=lambda: snapshots.NOW_S)
        async with app.run_test(size=(120, 40)) as pilot:
            await until(app.ready.is_set)
            scene = Scene(app, pilot)
            await scene.press("colon", *"orders")
            await until(lambda: len(names(scene)) == 3)
            assert names(scene) == [("group", "orders"), ("topic", "orders"), ("topic", "orders-archive")]
            await scene.press("down", "down", "enter")
            await until(lambda: isinstance(app.screen, TopicsScreen))

    asyncio.run(run())


def test_a_screen_opens_from_another_one() -> None:
    async def walk(scene: Scene) -> None:
        await scene.press("enter")
        await until(lambda: isinstance(scene.app.screen, GroupScreen))
        await scene.press("colon", *"events")
        assert names(scene)[0] == ("screen", "Events")
        await scene.press("enter")
        await until(lambda: isinstance(scene.app.screen, EventsScreen))
        assert len(scene.app.screen_stack) == 2

    watching(SOME, walk)


def test_an_action_runs_after_the_finder_has_closed() -> None:
    async def walk(scene: Scene) -> None:
        await scene.press("colon", *"next theme")
        assert names(scene)[0] == ("action", "Next theme")
        await scene.press("enter")
        await until(lambda: scene.app.theme == "light")
        await scene.press("colon", *"help", "enter")
        await until(lambda: isinstance(scene.app.screen, HelpScreen))

    watching(SOME, walk)


def test_screens_and_the_actions_of_the_focused_table_are_found_first() -> None:
    async def walk(scene: Scene) -> None:
        await scene.press("colon")
        found = names(scene)
        assert found[0] == ("screen", "Groups")
        assert ("action", "Reset offsets of the group") in found
        assert ("action", "Mark or unmark the row") in found
        assert not [name for _, name in found if name in ("Up", "Down")]
        await scene.press("down", "up", "up", "pagedown", "pageup", "escape")
        assert scene.app.screen is scene.screen

    watching(SOME, walk)


def test_a_disabled_action_is_not_found() -> None:
    async def walk(scene: Scene) -> None:
        await scene.press("colon", *"reset offsets of")
        assert ("action", "Reset offsets of the group") not in names(scene)

    watching(SOME, walk, read_only=True)


def test_hostile_names_are_text() -> None:
    async def walk(scene: Scene) -> None:
        await scene.press("colon", *"31mred")
        assert "\\x1b[31m" in names(scene)[0][1]
        await scene.press(*["backspace"] * 6, *"zzzzq", "enter")
        assert names(scene) == []
        assert "Nothing has this name." in finder(scene).rows.render_line(0).text

    watching(SOME, walk)
