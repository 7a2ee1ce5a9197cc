"""The table: columns, cursor, sorting, marks, and refreshes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from textual.app import App, ComposeResult
from textual.pilot import Pilot

from kgctl.tui.widgets.table.columns import Column, in_order, laid_out
from kgctl.tui.widgets.table.needs import PATIENCE
from kgctl.tui.widgets.table.rows import Rows


@dataclass(frozen=True)
class Row:
    name: str
    lag: int | None = 0
    note: str = ""


NAME = Column[Row]("name", "NAME", lambda row: row.name, 6, flex=1, most=30, order=lambda row: row.name)
LAG = Column[Row]("lag", "LAG", lambda row: str(row.lag), 6, right=True, order=lambda row: row.lag, falling=True)
NOTE = Column[Row]("note", "NOTE", lambda row: row.note, 8, priority=2)
WIDE = Column[Row]("wide", "WIDE", lambda row: "w", 20, order=lambda row: row.note, priority=1)


NEXT = Column[Row]("next", "NEXT", lambda row: row.note, 6, flex=1)


def widths(found: Sequence[tuple[Column[Row], int]]) -> dict[str, int]:
    return {column.key: width for column, width in found}


class OneTable(App[None]):
    def __init__(self, rows: Sequence[Row]) -> None:
        super().__init__()
        self.table = Rows[Row]([NAME, LAG, NOTE, WIDE], key=lambda row: row.name, empty="Nothing here.")
        self.first = rows
        self.moved: list[str | None] = []
        self.chosen: list[str] = []

    def compose(self) -> ComposeResult:
        yield self.table

    def on_mount(self) -> None:
        self.table.show(self.first)

    def on_rows_moved(self, event: Rows.Moved) -> None:
        self.moved.append(event.row.name if event.row else None)

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        self.chosen.append(event.row.name)


def numbered(count: int) -> list[Row]:
    return [Row(f"r{number:05}", number % 7) for number in range(count)]


def on_table(
    rows: Sequence[Row], walk: Callable[[OneTable, Pilot[None]], Awaitable[Any]], size: tuple[int, int] = (80, 24)
) -> None:
    async def run() -> None:
        app = OneTable(rows)
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            await walk(app, pilot)

    asyncio.run(run())


def names(app: OneTable) -> list[str]:
    return [row.name for row in app.table.rows]


def line(app: OneTable, y: int) -> str:
    return app.table.render_line(y).text


# ---- columns


def test_columns_with_the_highest_priority_are_hidden_first() -> None:
    columns = [NAME, LAG, NOTE, WIDE]
    assert [column.key for column, _ in laid_out(columns, 46)] == ["name", "lag", "note", "wide"]
    assert [column.key for column, _ in laid_out(columns, 45)] == ["name", "lag", "wide"]
    assert [column.key for column, _ in laid_out(columns, 30)] == ["name", "lag"]


def test_remaining_cells_go_to_flexible_columns_up_to_their_maximum() -> None:
    assert {column.key: width for column, width in laid_out([NAME, LAG], 20)} == {"name": 12, "lag": 6}
    assert {column.key: width for column, width in laid_out([NAME, LAG], 99)} == {"name": 30, "lag": 6}


def test_columns_that_cannot_be_hidden_shrink() -> None:
    assert sum(width for _, width in laid_out([NAME, LAG], 10)) + 2 <= 10


def test_a_column_that_would_cut_its_texts_takes_cells_that_another_has_left() -> None:
    columns = [NAME, NEXT]
    assert widths(laid_out(columns, 22)) == {"name": 10, "next": 10}
    assert widths(laid_out(columns, 22, {"name": 14, "next": 5})) == {"name": 14, "next": 6}
    assert widths(laid_out(columns, 22, {"name": 14, "next": 2})) == {"name": 14, "next": 6}
    assert widths(laid_out(columns, 22, {"name": 19, "next": 2})) == {"name": 16, "next": 4}


def test_needs_that_are_met_move_no_column() -> None:
    assert laid_out([NAME, NEXT], 22, {"name": 3, "next": 10}) == laid_out([NAME, NEXT], 22)


def test_a_column_that_is_spelt_out_keeps_the_cells_of_its_longest_form() -> None:
    def fitting(row: Row, width: int) -> str:
        return row.note if len(row.note) <= width else row.note[:4]

    async def walk(app: OneTable, pilot: Pilot[None]) -> None:
        for is_spelt_out, word in ((False, "Prep"), (True, "Preparing")):
            app.table.columns = (NAME, replace(NEXT, drawn=fitting, is_spelt_out=is_spelt_out))
            app.table.show([Row("n" * 17, note="Preparing")])
            assert line(app, 1).split()[1] == word

    on_table([], walk, size=(26, 10))


def test_a_column_keeps_its_cells_for_some_refreshes() -> None:
    long, short = [Row("n" * 30, note="x")], [Row("n" * 4, note="y" * 7)]

    async def walk(app: OneTable, pilot: Pilot[None]) -> None:
        app.table.columns = (NAME, NEXT)
        app.table.show(long)
        assert app.table.width_of("name") == 30
        app.table.show(short)
        assert app.table.width_of("name") == 30
        for _ in range(PATIENCE):
            app.table.show(short)
        assert app.table.width_of("name") < 30

    on_table(long, walk, size=(42, 10))


def test_rows_without_a_value_are_last_in_both_directions() -> None:
    rows = [Row("a", None), Row("b", 1), Row("c", 2), Row("d", None)]
    assert [row.name for row in in_order(rows, LAG, False)] == ["b", "c", "a", "d"]
    assert [row.name for row in in_order(rows, LAG, True)] == ["c", "b", "a", "d"]


# ---- keys


def test_keys_move_the_cursor_and_keep_it_in_view() -> None:
    async def walk(app: OneTable, pilot: Pilot[None]) -> None:
        steps = [("j", 1), ("down", 2), ("k", 1), ("up", 0), ("up", 0), ("pagedown", 23), ("pageup", 0)]
        steps += [("ctrl+f", 23), ("ctrl+b", 0), ("ctrl+d", 12), ("ctrl+u", 0), ("G", 99), ("j", 99), ("home", 0)]
        steps += [("end", 99), ("home", 0)]
        for key, place in steps:
            await pilot.press(key)
            assert app.table.cursor_row == app.table.rows[place]
            region = app.table.cursor_region
            assert 1 <= region.y < 24
            assert app.table.rows[place].name in line(app, region.y)

    on_table(numbered(100), walk)


def test_enter_and_a_double_click_open_a_row() -> None:
    async def walk(app: OneTable, pilot: Pilot[None]) -> None:
        await pilot.press("j", "enter")
        await pilot.click(Rows, offset=(4, 4), times=2)
        await pilot.pause()
        assert app.chosen == ["r00001", "r00003"]

    on_table(numbered(10), walk)


def test_a_click_below_the_rows_does_nothing() -> None:
    async def walk(app: OneTable, pilot: Pilot[None]) -> None:
        await pilot.click(Rows, offset=(4, 20), times=2)
        assert (app.table.cursor_row, app.chosen) == (Row("r00000", 0), [])

    on_table(numbered(3), walk)


def test_an_empty_table_shows_a_sentence_and_accepts_every_key() -> None:
    async def walk(app: OneTable, pilot: Pilot[None]) -> None:
        await pilot.press("j", "G", "home", "pagedown", "enter")
        app.table.toggle_mark()
        app.table.sort_next()
        assert (app.table.cursor_row, app.chosen, app.table.marked) == (None, [], set())
        assert line(app, 2).strip() == "Nothing here."

    on_table([], walk)


# ---- sorting


def test_sorting_cycles_through_the_visible_columns() -> None:
    async def walk(app: OneTable, pilot: Pilot[None]) -> None:
        found = []
        for _ in range(3):
            app.table.sort_next()
            found.append(app.table.sorted_by)
        assert found == [("name", False), ("lag", True), ("name", False)]

    # 34 cells have no room for the columns with a priority.
    on_table(numbered(9), walk, size=(34, 10))


def test_the_header_shows_the_sort_column() -> None:
    async def walk(app: OneTable, pilot: Pilot[None]) -> None:
        app.table.sort_by("lag")
        assert "LAG\u2193" in line(app, 0)
        app.table.reverse()
        assert "LAG\u2191" in line(app, 0)

    on_table(numbered(9), walk)


def test_a_click_on_a_header_sorts_and_a_second_click_reverses() -> None:
    async def walk(app: OneTable, pilot: Pilot[None]) -> None:
        await pilot.click(Rows, offset=(3, 0))
        assert app.table.sorted_by == ("name", False)
        await pilot.click(Rows, offset=(3, 0))
        assert app.table.sorted_by == ("name", True)

    on_table(numbered(9), walk)


def test_the_order_of_equal_rows_is_the_same_after_a_refresh() -> None:
    rows = [Row("a", 1), Row("b", 2), Row("c", 1)]

    async def walk(app: OneTable, pilot: Pilot[None]) -> None:
        app.table.sort_by("name", descending=True)
        app.table.sort_by("lag")
        sorted_now = names(app)
        app.table.show(rows)
        assert names(app) == sorted_now == ["b", "a", "c"]

    on_table(rows, walk)


def test_sorting_keeps_the_cursor_on_its_row() -> None:
    async def walk(app: OneTable, pilot: Pilot[None]) -> None:
        await pilot.press("j", "j")
        app.table.sort_by("name", descending=True)
        assert app.table.cursor_row == Row("r00002", 2)

    on_table(numbered(9), walk)


# ---- refreshes


def test_a_refresh_moves_neither_the_cursor_nor_its_line() -> None:
    async def walk(app: OneTable, pilot: Pilot[None]) -> None:
        await pilot.press(*["pagedown"] * 2, "k", "k")
        before, at = app.table.cursor_row, app.table.cursor_region
        app.table.show([Row(f"q{number}") for number in range(5)] + numbered(100))
        await pilot.pause()
        assert app.table.cursor_row == before
        assert app.table.cursor_region == at

    on_table(numbered(100), walk)


def test_the_cursor_keeps_its_line_when_its_row_disappears() -> None:
    async def walk(app: OneTable, pilot: Pilot[None]) -> None:
        await pilot.press("j", "j")
        app.table.show([row for row in numbered(9) if row.name != "r00002"])
        assert app.table.cursor_row == Row("r00003", 3)
        app.table.show(numbered(1))
        assert app.table.cursor_row == Row("r00000", 0)

    on_table(numbered(9), walk)


def test_a_change_of_the_selected_row_posts_a_message() -> None:
    async def walk(app: OneTable, pilot: Pilot[None]) -> None:
        app.moved.clear()
        app.table.show([Row("r00000", 5), *numbered(9)[1:]])
        await pilot.pause()
        assert app.moved == ["r00000"]
        app.table.show([Row("r00000", 5), *numbered(5)[1:]])
        await pilot.pause()
        assert app.moved == ["r00000"]

    on_table(numbered(9), walk)


def test_marks_stay_with_their_rows() -> None:
    async def walk(app: OneTable, pilot: Pilot[None]) -> None:
        app.table.toggle_mark()
        app.table.toggle_mark()
        assert app.table.marked == {"r00000", "r00001"}
        assert app.table.cursor_row == Row("r00002", 2)
        app.table.show(numbered(9)[1:])
        assert line(app, 1).startswith("\u25c6 r00001")
        assert line(app, 2).startswith("  r00002")
        app.table.show(numbered(9))
        assert line(app, 1).startswith("\u25c6 r00000")
        await pilot.press("home")
        app.table.toggle_mark()
        assert app.table.marked == {"r00001"}

    on_table(numbered(9), walk)


# ---- rendering


def test_every_line_has_the_width_of_the_table() -> None:
    rows = [Row("\u7d44" * 60), Row("x" * 200), Row("[red]no markup[/red]"), Row("e\u0301" * 40)]

    async def walk(app: OneTable, pilot: Pilot[None]) -> None:
        width = app.table.scrollable_content_region.width
        assert {app.table.render_line(y).cell_length for y in range(10)} == {width}
        assert "[red]no markup[/red]" in line(app, 3)
        assert "\u2026" in line(app, 1)
        assert "\u2026" in line(app, 2)

    on_table(rows, walk)


def test_only_visible_lines_of_ten_thousand_rows_are_rendered() -> None:
    drawn: list[str] = []
    column = Column[Row]("name", "NAME", lambda row: drawn.append(row.name) or row.name, 10)  # type: ignore[func-returns-value]

    async def walk(app: OneTable, pilot: Pilot[None]) -> None:
        app.table.columns = (column,)
        drawn.clear()
        await pilot.press("G")
        await pilot.pause()
        assert app.table.cursor_row == Row("r09999", 9999 % 7)
        assert set(drawn) <= {f"r{number:05}" for number in range(9970, 10_000)}

    on_table(numbered(10_000), walk)
