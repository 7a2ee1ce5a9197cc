"""The assignment pane: every key, and refreshes while members join and leave."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kgctl.model.watched import Assignment
from kgctl.tui.widgets.assignment.grid import AssignmentGrid
from kgctl.tui.widgets.assignment.matrix import View
from kgctl.tui.widgets.assignment.pane import NOT_KNOWN, AssignmentPane
from tests.kgctl.tui.panes import Host, PaneScene, assigned, dealt

ORDERS = [("orders", number) for number in range(8)]
BEFORE = assigned(a="orders:0-2", b="orders:3-4", c="orders:5-6")
AFTER = assigned(a="orders:0-2,5", b="orders:3", d="orders:4")  # c left with partition 6, d joined
SHORT = {member: member[:9] for member in dealt(40, 40)}
NAMES = {"a": "worker-a", "b": "worker-b", "c": "worker-c", "d": "worker-d"}


class Scene(PaneScene[AssignmentPane]):
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
        return [line[2:14].strip() for line in self.lines[4:-1]]

    async def scroll_down(self, lines: int) -> None:
        """Scroll with the mouse wheel, which leaves the cursor on its row."""
        (grid,) = self.pane.query(AssignmentGrid)
        grid.scroll_relative(y=lines, animate=False, immediate=True)
        await self._pilot.pause()

    async def click(self, x: int, y: int) -> None:
        await self._pilot.click(offset=(x, y))
        await self._pilot.pause()

    async def show(self, after: Assignment | None, before: Assignment | None = None, **more: Any) -> None:
        self.pane.show(after, before, **more)
        await self._pilot.pause()


def at_a_pane(
    play: Callable[[Scene], Awaitable[None]],
    fill: Callable[[AssignmentPane], None] = lambda pane: pane.show(AFTER, BEFORE, names=NAMES),
    size: tuple[int, int] = (80, 24),
) -> None:
    async def run() -> None:
        app = Host(AssignmentPane(), fill)
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            await play(Scene(app, pilot))

    asyncio.run(run())


def many(pane: AssignmentPane) -> None:
    after, before = dealt(40, 300, skip=frozenset({7})), dealt(40, 300, skip=frozenset({11}))
    pane.show(after, before, names=SHORT)


def test_v_cycles_through_both_after_and_before() -> None:
    async def play(scene: Scene) -> None:
        assert "before and after" in scene.lines[0]
        assert "worker-c" in scene.text
        await scene.press("v")
        assert scene.pane.view is View.AFTER
        assert "Assignment: after " in scene.lines[0]
        assert "worker-c" not in scene.text
        await scene.press("v")
        assert scene.pane.view is View.BEFORE
        assert "Assignment: before " in scene.lines[0]
        assert "worker-d" not in scene.text
        await scene.press("v")
        assert scene.pane.view is View.BOTH

    at_a_pane(play)


def test_v_does_nothing_without_an_assignment_before() -> None:
    async def play(scene: Scene) -> None:
        await scene.show(AFTER, names=NAMES)
        await scene.press("v")
        assert scene.pane.view is View.AFTER
        assert "before" not in scene.lines[0]
        await scene.show(AFTER, BEFORE, names=NAMES)
        assert scene.pane.view is View.BOTH
        assert "before and after" in scene.lines[0]

    at_a_pane(play)


def test_f_switches_between_columns_and_ranges() -> None:
    async def play(scene: Scene) -> None:
        assert "PARTITIONS" not in scene.text
        await scene.press("f")
        assert "PARTITIONS" in scene.text
        assert "4 (+1)" in scene.text
        assert "0-2 \u25b25" in scene.text
        await scene.press("f")
        assert "PARTITIONS" not in scene.text

    at_a_pane(play)


@pytest.mark.parametrize(
    ("right", "left"), [("greater_than_sign", "less_than_sign"), ("shift+right", "shift+left")]
)  # fmt: skip
def test_columns_scroll_sideways_to_both_ends(right: str, left: str) -> None:
    async def play(scene: Scene) -> None:
        await scene.press("f")
        first = scene.lines[:6]
        assert "more >" in scene.text
        assert "< more" not in scene.text
        await scene.press(right)
        assert "< more >" in scene.text
        assert [line[:11] for line in scene.lines[4:6]] == [line[:11] for line in first[4:6]], "labels stay"
        await scene.press(*[right] * 20)
        assert "< more" in scene.text
        assert "more >" not in scene.text
        assert "290" in scene.text
        await scene.press(*[left] * 20)
        assert scene.lines[:6] == first

    at_a_pane(play, many)


def test_columns_that_fit_do_not_scroll_sideways() -> None:
    async def play(scene: Scene) -> None:
        before = scene.lines
        await scene.press("greater_than_sign", "shift+right")
        assert scene.lines == before

    at_a_pane(play)


def test_keys_move_the_cursor_and_it_stops_at_the_ends() -> None:
    async def play(scene: Scene) -> None:
        found = []
        for key in ("k", "j", "down", "up", "G", "home", "end", "home", "pagedown", "pageup"):
            await scene.press(key)
            found.append(scene.current)
        assert found == [
            "! unassigned", "worker-a", "worker-b", "worker-a", *["- worker-c", "! unassigned"] * 3
        ]  # fmt: skip

    at_a_pane(play)


def test_a_click_moves_the_cursor_only_on_a_row() -> None:
    async def play(scene: Scene) -> None:
        at = next(y for y, line in enumerate(scene.lines) if "worker-b" in line)
        await scene.click(20, at)
        assert scene.current == "worker-b"
        await scene.click(20, 18)
        await scene.click(20, 2)
        assert scene.current == "worker-b"

    at_a_pane(play)


def test_the_selected_row_is_described_in_words() -> None:
    async def play(scene: Scene) -> None:
        assert scene.lines[-1].strip() == "unassigned: 1 \u00b7 orders 6"
        await scene.press("j")
        assert scene.lines[-1].strip() == "worker-a: 4 (+1) \u00b7 orders 0-2 \u25b25"
        await scene.press("v")
        assert scene.lines[-1].strip() == "worker-a: 4 \u00b7 orders 0-2,5"

    at_a_pane(play)


# ---- refreshes


def test_the_cursor_stays_on_its_member() -> None:
    async def play(scene: Scene) -> None:
        await scene.press("j", "j")
        assert scene.current == "worker-b"
        await scene.show(assigned(a="orders:0", b="orders:1"), names=NAMES)
        assert scene.current == "worker-b"
        await scene.show(assigned(a="orders:0", aa="orders:2", ab="", b="orders:1"), names=NAMES, partitions=ORDERS)
        assert scene.current == "worker-b"

    at_a_pane(play)


def test_the_cursor_moves_to_an_existing_row_when_its_member_leaves() -> None:
    async def play(scene: Scene) -> None:
        await scene.press("G")
        await scene.show(assigned(a="orders:0"), names=NAMES)
        assert scene.current == "worker-a"
        await scene.show({})
        assert "No member owns a partition." in scene.text
        await scene.show(AFTER, BEFORE, names=NAMES)
        assert scene.current == "! unassigned"

    at_a_pane(play)


def test_a_refresh_keeps_view_folding_and_scroll_position() -> None:
    async def play(scene: Scene) -> None:
        await scene.press("f", "greater_than_sign", "v", "G")
        before = scene.lines
        many(scene.pane)
        await scene.press("k", "j")
        assert scene.lines == before

    at_a_pane(play, many)


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

    at_a_pane(play)


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

    at_a_pane(play, many)


def test_members_that_join_above_the_cursor_do_not_move_its_line() -> None:
    async def play(scene: Scene) -> None:
        await scene.press("G", "k", "k", "k")
        before = (scene.cursor_line, scene.current)
        after, was = dealt(40, 300, skip=frozenset({7})), dealt(40, 300, skip=frozenset({11}))
        await scene.show({**after, "a1": (), "a2": ()}, was, names=SHORT)
        assert (scene.cursor_line, scene.current) == before

    at_a_pane(play, many)


def test_an_unknown_assignment_shows_its_reason() -> None:
    async def play(scene: Scene) -> None:
        await scene.show(None, title="Generation 6", reason="It was not observed.")
        assert scene.lines[0].strip() == "Generation 6"
        assert "It was not observed." in scene.text
        assert "worker" not in scene.text
        await scene.press("v", "f", "j", "G", "greater_than_sign")
        await scene.show(None)
        assert NOT_KNOWN in scene.text
        await scene.show(AFTER, BEFORE, names=NAMES)
        assert "worker-a" in scene.text
        assert NOT_KNOWN not in scene.text

    at_a_pane(play)


def test_names_are_never_terminal_commands_or_markup() -> None:
    hostile = assigned(a="\x1b[2Jx\u202e:0-1", b="")
    names = {"a": "[red]one[/red]\x1b[31m\n"}

    async def play(scene: Scene) -> None:
        for keys in ([], ["f"], ["f", "j"]):
            await scene.press(*keys)
            assert not set("\x1b\u202e\x07\r") & set(scene.text)
            assert "[red]one[/red]" in scene.text
            assert "[u]title" in scene.lines[0]

    at_a_pane(play, lambda pane: pane.show(hostile, names=names, title="[u]title\x07", partitions=[("t\r", 0)]))


def test_every_line_has_the_width_of_the_terminal() -> None:
    wide = assigned(a="\u7d2f\u8a08:0-40 orders:0-3", b="orders:4")

    async def play(scene: Scene) -> None:
        await scene.press("f", "greater_than_sign")
        assert {strip.cell_length for strip in scene.app.screen._compositor.render_strips()} == {scene.app.size.width}

    for size in ((80, 24), (30, 8), (12, 5)):
        at_a_pane(play, lambda pane: pane.show(wide, names={"a": "\u6771\u4eac" * 20}), size)
