"""The panel of a rebalance: the grid of members and partitions, every key, and refreshes while members join and leave."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kgctl.model.watched import Assignment
from kgctl.tui.widgets.assignment.matrix import View
from kgctl.tui.widgets.group.bars import bars
from kgctl.tui.widgets.group.rebalance_panel import NOT_KNOWN, UNTIL_NOW, RebalancePanel
from tests.kgctl.tui.group_snapshots import WALL_MS
from tests.kgctl.tui.panes import Host, PaneScene, assigned, dealt
from tests.kgctl.tui.test_rebalances_panel import DONE, OPEN

ORDERS = [("orders", number) for number in range(8)]
BEFORE = assigned(a="orders:0-2", b="orders:3-4", c="orders:5-6")
AFTER = assigned(a="orders:0-2,5", b="orders:3", d="orders:4")  # c left with partition 6, d joined
SHORT = {member: member[:9] for member in dealt(40, 40)}
NAMES = {"a": "worker-a", "b": "worker-b", "c": "worker-c", "d": "worker-d"}


class Scene(PaneScene[RebalancePanel]):
    @property
    def lines(self) -> list[str]:
        """What is in the frame."""
        return [line.strip("\u2502")[1:] for line in super().lines[1:-1]]

    @property
    def title(self) -> str:
        return self.pane.title_text

    @property
    def current(self) -> str:
        """The label of the row under the cursor."""
        (line,) = [line for line in self.lines if line.startswith("\u203a ")]
        return line[2:].lstrip().split("  ")[0]

    @property
    def cursor_line(self) -> int:
        """The line of the cursor."""
        return next(y for y, line in enumerate(self.lines) if line.startswith("\u203a "))

    @property
    def labels(self) -> list[str]:
        """The labels of all lines."""
        return [line[2:14].strip() for line in self.lines[4:]]

    async def scroll_down(self, lines: int) -> None:
        """Scroll with the mouse wheel, which leaves the cursor on its row."""
        self.pane.grid.scroll_relative(y=lines, animate=False, immediate=True)
        await self._pilot.pause()

    async def click(self, x: int, y: int) -> None:
        await self._pilot.click(offset=(x + 2, y + 1))
        await self._pilot.pause()

    async def next_view(self) -> None:
        self.pane.next_view()
        await self._pilot.pause()

    async def show(self, after: Assignment | None, before: Assignment | None = None, **more: Any) -> None:
        self.pane.show(None, after, before, more.pop("names", {}), **more)
        await self._pilot.pause()


def at_a_panel(
    play: Callable[[Scene], Awaitable[None]],
    fill: Callable[[RebalancePanel], None] = lambda panel: panel.show(None, AFTER, BEFORE, NAMES),
    size: tuple[int, int] = (80, 24),
) -> None:
    async def run() -> None:
        app = Host(RebalancePanel())
        async with app.run_test(size=size) as pilot:
            app.pane.grid.focus()
            fill(app.pane)
            await pilot.pause()
            await play(Scene(app, pilot))

    asyncio.run(run())


def many(panel: RebalancePanel) -> None:
    after, before = dealt(40, 300, skip=frozenset({7})), dealt(40, 300, skip=frozenset({11}))
    panel.show(None, after, before, SHORT)


def test_views_cycle_through_both_after_and_before() -> None:
    async def play(scene: Scene) -> None:
        for view, absent in ((View.BOTH, "worker-x"), (View.AFTER, "worker-c"), (View.BEFORE, "worker-d")):
            assert scene.pane.view is view
            assert scene.title.endswith(f" {view.value}")
            assert ("\u25b3 gained \u25bd lost" in scene.title) == (view is View.BOTH)
            assert absent not in scene.text
            await scene.next_view()
        assert scene.pane.view is View.BOTH

    at_a_panel(play)


def test_there_is_one_view_without_an_assignment_before() -> None:
    async def play(scene: Scene) -> None:
        await scene.show(AFTER, names=NAMES)
        await scene.next_view()
        assert scene.pane.view is View.AFTER
        assert "after" not in scene.title
        await scene.show(AFTER, BEFORE, names=NAMES)
        assert scene.pane.view is View.BOTH

    at_a_panel(play)


def test_f_switches_between_ranges_and_columns() -> None:
    async def play(scene: Scene) -> None:
        assert "PARTITIONS" in scene.text
        assert "4 (+1)" in scene.text
        assert "0-2 \u25b35" in scene.text
        await scene.press("f")
        assert "PARTITIONS" not in scene.text
        assert "\u25a0 \u25a0 \u25a0 \u00b7 \u00b7 \u25b3" in scene.text
        await scene.press("f")
        assert "PARTITIONS" in scene.text

    at_a_panel(play)


def test_ranges_have_all_the_room_where_it_is_short() -> None:
    async def play(scene: Scene) -> None:
        assert "PARTITIONS" not in scene.text
        assert "0-2 \u25b35" in scene.text

    at_a_panel(play, size=(46, 14))


@pytest.mark.parametrize(
    ("right", "left"), [("greater_than_sign", "less_than_sign"), ("shift+right", "shift+left")]
)  # fmt: skip
def test_columns_scroll_sideways_to_both_ends(right: str, left: str) -> None:
    async def play(scene: Scene) -> None:
        await scene.press("f")
        first = scene.lines
        assert "more >" in scene.text
        assert "< more" not in scene.text
        await scene.press(right)
        assert "< more >" in scene.text
        assert "worker-01" in scene.text, "labels stay"
        await scene.press(*[right] * 20)
        assert "< more" in scene.text
        assert "more >" not in scene.text
        assert "290" in scene.text
        await scene.press(*[left] * 20)
        assert scene.lines == first

    at_a_panel(play, many)


def test_keys_move_the_cursor_and_it_stops_at_the_ends() -> None:
    async def play(scene: Scene) -> None:
        found = []
        for key in ("k", "j", "down", "up", "G", "home", "end", "home", "pagedown", "pageup"):
            await scene.press(key)
            found.append(scene.current)
        assert found == [
            "! unassigned", "worker-a", "worker-b", "worker-a", *["- worker-c", "! unassigned"] * 3
        ]  # fmt: skip

    at_a_panel(play)


def test_a_click_moves_the_cursor_only_on_a_row() -> None:
    async def play(scene: Scene) -> None:
        at = next(y for y, line in enumerate(scene.lines) if "worker-b" in line)
        await scene.click(20, at)
        assert scene.current == "worker-b"
        await scene.click(20, 20)
        await scene.click(20, 0)
        assert scene.current == "worker-b"

    at_a_panel(play)


def test_the_selected_row_is_described_in_words() -> None:
    async def play(scene: Scene) -> None:
        grid = scene.pane.grid
        assert grid.in_words() == "unassigned: 1 \u00b7 orders 6"
        await scene.press("j")
        assert grid.in_words() == "worker-a: 4 (+1) \u00b7 orders 0-2 \u25b35"
        await scene.next_view()
        assert grid.in_words() == "worker-a: 4 \u00b7 orders 0-2,5"

    at_a_panel(play)


def test_a_rebalance_is_told_above_what_it_moved() -> None:
    async def play(scene: Scene) -> None:
        (bar,) = bars([DONE], WALL_MS, NAMES)
        scene.pane.show(bar, AFTER, BEFORE, NAMES)
        assert scene.title.startswith("\u2074\u25b8Gen 4 \u00b7 worker-3 timed out \u00b7 ")
        assert scene.pane.text.splitlines()[:2] == [
            "Members took 3 s to join, the leader 1 s to assign; 2 members, 2 partitions moved.",
            "7 partitions: 4 stay, 2 move, 1 unassigned; stickiness 57 %.",
        ]

    at_a_panel(play)


def test_a_rebalance_under_way_shows_the_assignment_until_now() -> None:
    async def play(scene: Scene) -> None:
        (bar,) = bars([OPEN], WALL_MS, NAMES)
        scene.pane.show(bar, None, BEFORE, NAMES)
        await scene.press("j")
        assert scene.title == "\u2074\u25b8Under way \u00b7 member joined"
        assert UNTIL_NOW in scene.pane.text
        assert scene.current == "worker-b"
        scene.pane.show(bar, None, None, NAMES)
        await scene.press("j")
        assert "There is no assignment yet." in scene.pane.text
        assert "worker-b" not in scene.text

    at_a_panel(play)


# ---- refreshes


def test_the_cursor_stays_on_its_member() -> None:
    async def play(scene: Scene) -> None:
        await scene.press("j", "j")
        assert scene.current == "worker-b"
        await scene.show(assigned(a="orders:0", b="orders:1"), names=NAMES)
        assert scene.current == "worker-b"
        await scene.show(assigned(a="orders:0", aa="orders:2", ab="", b="orders:1"), names=NAMES, partitions=ORDERS)
        assert scene.current == "worker-b"

    at_a_panel(play)


def test_the_cursor_moves_to_an_existing_row_when_its_member_leaves() -> None:
    async def play(scene: Scene) -> None:
        await scene.press("G")
        await scene.show(assigned(a="orders:0"), names=NAMES)
        assert scene.current == "worker-a"
        await scene.show({})
        assert "No member owns a partition." in scene.text
        await scene.show(AFTER, BEFORE, names=NAMES)
        assert scene.current == "! unassigned"

    at_a_panel(play)


def test_a_refresh_keeps_view_folding_and_scroll_position() -> None:
    async def play(scene: Scene) -> None:
        await scene.press("f", "greater_than_sign", "G")
        await scene.next_view()
        before = scene.lines
        many(scene.pane)
        await scene.press("k", "j")
        assert scene.lines == before

    at_a_panel(play, many)


@pytest.mark.usefixtures("every_render")
def test_an_unchanged_refresh_redraws_nothing() -> None:
    async def play(scene: Scene) -> None:
        await scene.show(dict(AFTER), dict(BEFORE), names=dict(NAMES))
        before = scene.app.redraws
        await scene.show(dict(AFTER), dict(BEFORE), names=dict(NAMES))
        await scene.show(dict(AFTER), dict(BEFORE), names=dict(NAMES))
        assert scene.app.redraws == before
        await scene.show(AFTER, BEFORE, names={**NAMES, "a": "worker-A"})
        assert scene.app.redraws > before
        assert "worker-A" in scene.text

    at_a_panel(play)


def test_a_refresh_does_not_scroll_back_to_the_cursor() -> None:
    async def play(scene: Scene) -> None:
        await scene.press("j")
        await scene.scroll_down(10)
        before = scene.labels
        assert "worker-01" not in before
        await scene.show(*(dealt(40, 299, skip=frozenset({gone})) for gone in (7, 11)), names=SHORT)
        assert scene.labels == before
        await scene.press("j")
        assert scene.current == "worker-02"

    at_a_panel(play, many)


def test_members_that_join_above_the_cursor_do_not_move_its_line() -> None:
    async def play(scene: Scene) -> None:
        await scene.press("G", "k", "k", "k")
        before = (scene.cursor_line, scene.current)
        after, was = dealt(40, 300, skip=frozenset({7})), dealt(40, 300, skip=frozenset({11}))
        await scene.show({**after, "a1": (), "a2": ()}, was, names=SHORT)
        assert (scene.cursor_line, scene.current) == before

    at_a_panel(play, many)


def test_an_unknown_assignment_says_so() -> None:
    async def play(scene: Scene) -> None:
        await scene.show(None)
        assert NOT_KNOWN in scene.text
        assert "worker" not in scene.text
        await scene.press("f", "j", "G", "greater_than_sign")
        await scene.next_view()
        await scene.show(AFTER, BEFORE, names=NAMES)
        assert "worker-a" in scene.text
        assert NOT_KNOWN not in scene.text

    at_a_panel(play)


def test_names_are_never_terminal_commands_or_markup() -> None:
    hostile = assigned(a="\x1b[2Jx\u202e:0-1", b="")
    names = {"a": "[red]one[/red]\x1b[31m\n"}

    async def play(scene: Scene) -> None:
        for keys in ([], ["f"], ["f", "j"]):
            await scene.press(*keys)
            assert not set("\x1b\u202e\x07\r") & set(scene.text)
            assert "[red]one[/red]" in scene.text

    at_a_panel(play, lambda panel: panel.show(None, hostile, None, names, [("t\r", 0)]))


def test_every_line_has_the_width_of_the_terminal() -> None:
    wide = assigned(a="\u7d2f\u8a08:0-40 orders:0-3", b="orders:4")

    async def play(scene: Scene) -> None:
        await scene.press("f", "greater_than_sign")
        assert {strip.cell_length for strip in scene.app.screen._compositor.render_strips()} == {scene.app.size.width}

    for size in ((80, 24), (30, 8), (12, 5)):
        at_a_panel(play, lambda panel: panel.show(None, wide, None, {"a": "\u6771\u4eac" * 20}), size)
