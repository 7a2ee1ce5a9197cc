"""The partitions of a group: reasons for missing values, columns by width, sorting, filters."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from kgctl.model.failure import RowError
from kgctl.model.watched import WatchedPartition
from kgctl.tui.widgets.group.partitions import NOTHING, PartitionsPanel, in_words, why
from tests.kgctl.tui.panes import FAILED, UNCOMMITTED, Host, PaneScene, row

SMALL, BESIDE, LARGE = (80, 24), (56, 24), (160, 24)
# By partition 0, 1, 2, 10; by lag 1, 10, 2, 0.
FOUR = [
    row(partition=10, lag=300, committed=40, log_end=340, rate_in=5.0, rate_out=80.0, eta_s=4.0, consumer_id="b"),
    row(partition=0, lag=0, committed=10, log_end=10, rate_in=7.0, rate_out=7.0, eta_s=0.0, consumer_id="d"),
    row(partition=2, lag=20, committed=30, log_end=50, rate_in=6.0, rate_out=8.0, eta_s=10.0, consumer_id="a"),
    row(partition=1, lag=4_000, committed=20, log_end=4_020, rate_in=90.0, rate_out=9.0, eta_s=None, consumer_id="c"),
]


class Scene(PaneScene[PartitionsPanel]):
    @property
    def order(self) -> list[int]:
        return [one.partition for one in self.pane.table.rows]

    @property
    def cells(self) -> list[str]:
        """The cells of the first row."""
        return self.lines[2].strip("\u2502 ").split()

    async def show(self, partitions: Sequence[WatchedPartition]) -> None:
        self.pane.show_partitions(partitions, {}, is_owned=True)
        await self._pilot.pause()


# A partition of a share group has no owner.
SHARED: dict[str, Any] = {"consumer_id": None, "client_id": None}


def at_a_panel(
    play: Callable[[Scene], Awaitable[None]],
    partitions: Sequence[WatchedPartition] = FOUR,
    size: tuple[int, int] = SMALL,
) -> None:
    async def run() -> None:
        app = Host(PartitionsPanel())
        async with app.run_test(size=size) as pilot:
            scene = Scene(app, pilot)
            app.pane.table.focus()
            await scene.show(partitions)
            await play(scene)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("partition", "reason"),
    [
        (row(), []),
        (row(lag=0, eta_s=0.0), []),
        (row(**UNCOMMITTED), ["No offset is committed, so there is no lag.", "No member owns this partition."]),
        (row(consumer_id=None, client_id=None), ["No member owns this partition."]),
        (row(log_end=None, lag=None, rate_in=None, rate_out=None, eta_s=None), ["The log end offset is not known."]),
        (row(rate_in=None, rate_out=None, eta_s=None), ["Rates need 3 s."]),
        (row(eta_s=None), ["No ETA: the lag does not shrink."]),
        (row(lag=-3, eta_s=None), ["The committed offset is beyond the log end: the topic was truncated or recreated."]),
        (row(**SHARED, readers=2), []),
        (row(**SHARED, readers=0), ["No member reads this partition."]),
        (row(**UNCOMMITTED, readers=2), ["There is no start offset before the first fetch, so there is no lag."]),
        (row(**FAILED), ["Its leader is not available (LEADER_NOT_AVAILABLE)."]),
    ],
)  # fmt: skip
def test_each_missing_value_has_a_reason(partition: WatchedPartition, reason: list[str]) -> None:
    assert why(partition) == reason


def test_a_partition_without_owner_is_no_news_during_a_rebalance() -> None:
    assert why(row(consumer_id=None), is_owned=False) == []


def test_values_without_a_column_are_told_in_words() -> None:
    told = ["Committed 9,000 of 10,200.", "Out 100/s.", "Caught up in 1 min."]
    assert in_words(row(), {"topic", "lag"}) == told
    assert in_words(row(), {"committed", "out", "eta"}) == []


def test_the_largest_lag_is_first_and_s_sorts_by_each_visible_column() -> None:
    async def play(scene: Scene) -> None:
        assert scene.order == [1, 10, 2, 0]
        assert scene.pane.title_text == "\u00b2\u25b8Partitions 4 \u00b7 lag\u2193"
        orders = []
        for _ in range(4):
            await scene.press("s")
            orders.append(scene.order)
        assert orders == [[1, 0, 2, 10], [10, 1, 2, 0], [2, 10, 0, 1], [2, 10, 1, 0]]  # in, out, ETA, member
        await scene.press("S")
        assert scene.order == [0, 1, 10, 2]

    at_a_panel(play)


def test_columns_grow_with_the_width_and_no_cell_is_cut() -> None:
    async def narrow(scene: Scene) -> None:
        assert scene.lines[1].strip("\u2502 ").split() == ["TOPIC", "P", "LAG\u2193", "TREND", "IN/s", "MEMBER"]
        assert "1.19T" in scene.cells
        assert "\u2026" not in scene.text

    async def wide(scene: Scene) -> None:
        assert "COMMITTED" in scene.lines[1]
        assert "9,999,999,999" in scene.cells or "10.0G" in scene.cells
        assert "\u2026" not in scene.text

    large = row(consumer_id="a", committed=9_999_999_999, log_end=1_200_000_000_000, lag=1_190_000_000_001)
    at_a_panel(narrow, [large], BESIDE)
    at_a_panel(wide, [large], LARGE)


def test_an_error_is_recognizable_without_colour() -> None:
    async def play(scene: Scene) -> None:
        assert " error" in scene.lines[2]
        assert "1 with an error" in scene.lines[0]
        assert "Its leader is not available" in scene.text

    at_a_panel(play, [row(**FAILED)])


def test_a_filter_selects_by_topic_member_and_lag() -> None:
    async def play(scene: Scene) -> None:
        for text, found in (("lag:>100", [1, 10]), ("member:^a$", [2]), ("orders-1$", [1]), ("!topic:orders", [])):
            await scene.press("slash", *text, "enter")
            assert scene.order == found
            await scene.press("escape")
        assert scene.order == [1, 10, 2, 0]

    at_a_panel(play)


@pytest.mark.usefixtures("every_render")
def test_a_refresh_keeps_the_cursor_on_its_partition_and_an_unchanged_one_redraws_nothing() -> None:
    async def play(scene: Scene) -> None:
        await scene.press("j")
        await scene.show([*(one for one in FOUR if one.partition != 10), row(partition=10, lag=9_000), row("audit", 7)])
        assert scene.order == [10, 1, 7, 2, 0]
        assert scene.pane.cursor_partition is not None
        assert scene.pane.cursor_partition.partition == 10
        before = scene.app.redraws
        await scene.show(list(scene.pane.table.rows))
        assert scene.app.redraws == before

    at_a_panel(play)


def test_an_empty_panel_shows_a_sentence() -> None:
    async def play(scene: Scene) -> None:
        assert NOTHING in scene.text
        await scene.press("j", "G", "s", "S", "enter")
        await scene.show(FOUR)
        assert "Partitions 4" in scene.lines[0]

    at_a_panel(play, [])


def test_names_are_never_terminal_commands_or_markup() -> None:
    evil = {"consumer_id": "[bold]c[/bold]\x1b]0;x\x07", "error": RowError("E", "[red]why[/red]\x1b[2J\n")}

    async def play(scene: Scene) -> None:
        assert not set("\x1b\x07\u202e") & set(scene.text)
        for text in ("[red]t[/red]", "[bold]c[/bold]", "[red]why[/red]"):
            assert text in scene.text

    at_a_panel(play, [row("[red]t[/red]\x1b[31m\u202e", 0, **evil)], (200, 24))
