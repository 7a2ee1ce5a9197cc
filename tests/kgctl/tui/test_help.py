"""The help, generated from the bindings."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.pilot import Pilot
from textual.widgets import Static

from kgctl.tui.app import KgctlApp
from kgctl.tui.screens.group import GroupScreen
from kgctl.tui.screens.groups import GroupsScreen
from kgctl.tui.screens.help import HelpScreen
from tests.kgctl.tui import snapshots
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
        feed = PreparedFeed([snapshots.snapshot(map(snapshots.group, names))], {name: [None] for name in names})
        app = KgctlApp(feed, clock=lambda: snapshots.NOW_S, read_only=read_only)
        async with app.run_test(size=size) as pilot:
            await until(app.ready.is_set)
            await pilot.pause()
            await walk(app, pilot)

    asyncio.run(run())


def help_text(app: KgctlApp) -> str:
    assert isinstance(app.screen, HelpScreen)
    columns = [one for one in app.screen.query("#columns > Static").results(Static) if one.display]
    return "\n\n".join(str(one.content) for one in columns)


# ---- help


def test_the_help_has_the_keys_of_the_screen_the_table_and_the_app() -> None:
    async def walk(app: KgctlApp, pilot: Pilot[None]) -> None:
        await pilot.press("question_mark")
        lines = {" ".join(line.split()) for line in help_text(app).splitlines()}
        assert {"On this screen", "In the table", "Everywhere"} <= lines
        assert {
            "r Reset offsets of the group",
            "? Help",
            ": Find groups, topics, screens and actions",
            "\u2191 k Up",
            "ctrl+r Refresh now",
        } <= lines
        assert not [line for line in lines if "disabled" in line]

    on_groups(walk)


def test_the_help_of_a_group_describes_its_actions() -> None:
    async def walk(app: KgctlApp, pilot: Pilot[None]) -> None:
        await pilot.press("enter")
        await until(lambda: isinstance(app.screen, GroupScreen))
        await pilot.press("question_mark")
        await pilot.pause()
        for words in ("Reset offsets of the group", "Trigger a rebalance of the group", "Remove members of the group"):
            assert words in help_text(app)

    on_groups(walk)


def test_a_new_binding_appears_in_the_help() -> None:
    async def walk(app: KgctlApp, pilot: Pilot[None]) -> None:
        app.bind("ctrl+g", "bell", description="Ring the bell")
        app.screen._bindings.bind("f7", "app.bell", "Ring here")
        await pilot.press("question_mark")
        lines = [" ".join(line.split()) for line in help_text(app).splitlines()]
        assert lines.index("f7 Ring here") < lines.index("Everywhere") < lines.index("ctrl+g Ring the bell")

    on_groups(walk)


def test_disabled_actions_are_marked_in_the_help() -> None:
    async def walk(app: KgctlApp, pilot: Pilot[None]) -> None:
        await pilot.press("question_mark")
        assert "Reset offsets of the group (disabled)" in help_text(app)

    on_groups(walk, read_only=True)


def test_escape_question_mark_and_q_close_the_help() -> None:
    async def walk(app: KgctlApp, pilot: Pilot[None]) -> None:
        for key in ("escape", "question_mark", "q"):
            await pilot.press("question_mark")
            assert isinstance(app.screen, HelpScreen)
            await pilot.press(key)
            assert isinstance(app.screen, GroupsScreen)

    on_groups(walk)


def test_keys_scroll_a_help_that_does_not_fit() -> None:
    async def walk(app: KgctlApp, pilot: Pilot[None]) -> None:
        await pilot.press("question_mark")
        scroll = app.screen.query_one("#keys", VerticalScroll)
        end = scroll.max_scroll_y
        assert end > 2
        steps = [("j", 1), ("down", 2), ("k", 1), ("up", 0), ("G", end), ("g", 0), ("end", end), ("home", 0)]
        page = min(end, scroll.size.height - 1)
        for down, up in (("pagedown", "pageup"), ("space", "ctrl+b"), ("ctrl+f", "ctrl+u"), ("ctrl+d", "pageup")):
            steps += [(down, page), (up, 0)]
        for key, y in steps:
            await pilot.press(key)
            await pilot.pause()
            assert scroll.scroll_y == y, key

    on_groups(walk)


def test_no_line_of_the_help_wraps_in_80_cells() -> None:
    async def walk(app: KgctlApp, pilot: Pilot[None]) -> None:
        await pilot.press("question_mark")
        width = app.screen.query_one("#first").content_size.width
        assert max(map(len, help_text(app).splitlines())) <= width

    on_groups(walk)


def test_a_help_that_is_too_high_has_two_columns_where_there_is_room() -> None:
    async def at(pilot: Pilot[None], app: KgctlApp) -> tuple[int, bool]:
        await pilot.press("question_mark")
        await pilot.pause()
        keys = app.screen.query_one("#keys", VerticalScroll)
        says_more = str(keys.border_subtitle).startswith("\u25bc more")
        assert says_more == bool(keys.max_scroll_y)
        shown = [one for one in app.screen.query("#columns > Static") if one.display]
        for one in shown:
            assert max(map(len, str(one.content).splitlines())) <= one.content_size.width  # type: ignore[attr-defined]
        return len(shown), says_more

    for size, expected in (((80, 24), (1, True)), ((120, 40), (2, False)), ((200, 60), (1, False))):

        async def walk(app: KgctlApp, pilot: Pilot[None], expected: tuple[int, bool] = expected) -> None:
            assert await at(pilot, app) == expected

        on_groups(walk, size)


def test_a_binding_without_a_description_is_not_in_the_help() -> None:
    async def walk(app: KgctlApp, pilot: Pilot[None]) -> None:
        app._bindings.key_to_bindings["f8"] = [Binding("f8", "bell", "")]
        await pilot.press("question_mark")
        assert "f8" not in help_text(app)

    on_groups(walk)
