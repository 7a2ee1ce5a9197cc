"""The help and the palette: both tell what the bindings say, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from textual.binding import Binding
from textual.command import CommandPalette
from textual.containers import VerticalScroll
from textual.pilot import Pilot
from textual.widgets import Static
from textual.widgets.option_list import Option

from kgctl.tui.app import KgctlApp
from kgctl.tui.screens.group import GroupScreen
from kgctl.tui.screens.groups import GroupsScreen
from kgctl.tui.screens.help import HelpScreen
from tests.kgctl.tui import looks
from tests.kgctl.tui.prepared import PreparedFeed
from tests.kgctl.tui.waiting import until


def on_groups(
    walk: Callable[[KgctlApp, Pilot[None]], Awaitable[Any]],
    size: tuple[int, int] = (80, 24),
    *,
    read_only: bool = False,
) -> None:
    async def run() -> None:
        names = ["billing", "\x1b[31mred", "[b]bold", *(f"many-{number}" for number in range(200))]
        feed = PreparedFeed([looks.look(map(looks.group, names))], {name: [None] for name in names})
        app = KgctlApp(feed, clock=lambda: looks.NOW_S, read_only=read_only)
        async with app.run_test(size=size) as pilot:
            await until(app.heard.is_set)
            await pilot.pause()
            await walk(app, pilot)

    asyncio.run(run())


def said(app: KgctlApp) -> str:
    assert isinstance(app.screen, HelpScreen)
    return str(app.screen.query_one("#keys > Static", Static).content)


def offered(app: KgctlApp) -> list[str]:
    assert isinstance(app.screen, CommandPalette)
    options: list[Option] = list(app.screen.query_one("CommandList").options)
    return [str(option.prompt) for option in options]


# ---- help


def test_the_help_has_every_key_of_the_screen_of_its_table_and_of_the_app() -> None:
    async def walk(app: KgctlApp, pilot: Pilot[None]) -> None:
        await pilot.press("question_mark")
        lines = {" ".join(line.split()) for line in said(app).splitlines()}
        assert {"On this screen", "In the table", "Everywhere"} <= lines
        assert {"r Reset offsets of the group", "? Help", ": Commands", "\u2191 k Up", "ctrl+r Look now"} <= lines
        assert not [line for line in lines if "switched off" in line]

    on_groups(walk)


def test_the_help_says_of_a_group_what_its_actions_change() -> None:
    async def walk(app: KgctlApp, pilot: Pilot[None]) -> None:
        await pilot.press("enter")
        await until(lambda: isinstance(app.screen, GroupScreen))
        await pilot.press("question_mark")
        await pilot.pause()
        for words in ("Reset offsets of the group", "Trigger a rebalance of the group", "Remove a member of the group"):
            assert words in said(app)

    on_groups(walk)


def test_a_binding_that_is_new_is_in_the_help() -> None:
    async def walk(app: KgctlApp, pilot: Pilot[None]) -> None:
        app.bind("ctrl+g", "bell", description="Ring the bell")
        app.screen._bindings.bind("f7", "app.bell", "Ring here")
        await pilot.press("question_mark")
        lines = [" ".join(line.split()) for line in said(app).splitlines()]
        assert lines.index("f7 Ring here") < lines.index("Everywhere") < lines.index("ctrl+g Ring the bell")

    on_groups(walk)


def test_what_is_switched_off_is_said_to_be() -> None:
    async def walk(app: KgctlApp, pilot: Pilot[None]) -> None:
        await pilot.press("question_mark")
        assert "Reset offsets of the group (switched off)" in said(app)

    on_groups(walk, read_only=True)


@pytest.mark.parametrize("key", ["escape", "question_mark", "q"])
def test_the_help_is_closed_by_the_keys_that_one_tries(key: str) -> None:
    async def walk(app: KgctlApp, pilot: Pilot[None]) -> None:
        await pilot.press("question_mark", key)
        assert isinstance(app.screen, GroupsScreen)

    on_groups(walk)


@pytest.mark.parametrize(
    ("keys", "at"),
    [
        ("j", "below"),
        ("down", "below"),
        ("pagedown", "below"),
        ("space", "below"),
        ("G", "end"),
        ("end", "end"),
        ("G g", "top"),
        ("end home", "top"),
        ("j k", "top"),
        ("j up", "top"),
        ("pagedown pageup", "top"),
    ],
)
def test_the_help_scrolls_where_it_does_not_fit(keys: str, at: str) -> None:
    async def walk(app: KgctlApp, pilot: Pilot[None]) -> None:
        await pilot.press("question_mark", *keys.split())
        await pilot.pause()
        scroll = app.screen.query_one("#keys", VerticalScroll)
        assert scroll.max_scroll_y > 0
        place = {
            "top": scroll.scroll_y == 0,
            "end": scroll.scroll_y == scroll.max_scroll_y,
            "below": scroll.scroll_y > 0,
        }
        assert place[at]

    on_groups(walk)


def test_no_line_of_the_help_is_broken_in_80_cells() -> None:
    async def walk(app: KgctlApp, pilot: Pilot[None]) -> None:
        await pilot.press("question_mark")
        width = app.screen.query_one("#keys > Static").content_size.width
        assert max(map(len, said(app).splitlines())) <= width

    on_groups(walk)


def test_a_binding_without_words_is_not_in_the_help() -> None:
    async def walk(app: KgctlApp, pilot: Pilot[None]) -> None:
        app._bindings.key_to_bindings["f8"] = [Binding("f8", "bell", "")]
        await pilot.press("question_mark")
        assert "f8" not in said(app)

    on_groups(walk)


# ---- palette


def test_the_palette_offers_what_the_keys_do_and_nothing_of_textuals_own() -> None:
    async def walk(app: KgctlApp, pilot: Pilot[None]) -> None:
        await pilot.press("colon")
        await until(lambda: offered(app))
        assert "Reset offsets of the group  (r)" in offered(app)
        assert not [text for text in offered(app) if "Screenshot" in text or "Theme" in text or "Maximize" in text]

    on_groups(walk)


def test_a_command_of_the_palette_does_what_its_key_does() -> None:
    async def walk(app: KgctlApp, pilot: Pilot[None]) -> None:
        await pilot.press("colon", *"next colours")
        await until(lambda: offered(app) and "Next colours" in offered(app)[0])
        await pilot.press("enter")
        await until(lambda: app.theme == "light")

    on_groups(walk)


def test_the_palette_opens_a_group_by_a_part_of_its_name() -> None:
    async def walk(app: KgctlApp, pilot: Pilot[None]) -> None:
        await pilot.press("colon", *"open bill")
        await until(lambda: offered(app) == ["open billing"])
        await pilot.press("enter")
        await until(lambda: isinstance(app.screen, GroupScreen))
        assert isinstance(app.screen, GroupScreen)
        assert app.screen.group == "billing"

    on_groups(walk)


@pytest.mark.parametrize(("part", "shown"), [("31mred", "open \\x1b[31mred"), ("[b]bold", "open [b]bold")])
def test_the_palette_shows_names_as_they_may_be_shown(part: str, shown: str) -> None:
    async def walk(app: KgctlApp, pilot: Pilot[None]) -> None:
        await pilot.press("colon", *part)
        await until(lambda: shown in offered(app))

    on_groups(walk)


def test_of_many_groups_the_palette_offers_the_first_few() -> None:
    async def walk(app: KgctlApp, pilot: Pilot[None]) -> None:
        await pilot.press("colon", *"many-")
        await until(lambda: offered(app))
        assert len([text for text in offered(app) if text.startswith("open many-")]) == 50

    on_groups(walk)


def test_an_action_that_is_switched_off_is_not_in_the_palette() -> None:
    async def walk(app: KgctlApp, pilot: Pilot[None]) -> None:
        await pilot.press("colon")
        await until(lambda: offered(app))
        assert not [text for text in offered(app) if text.startswith("Reset")]

    on_groups(walk, read_only=True)
