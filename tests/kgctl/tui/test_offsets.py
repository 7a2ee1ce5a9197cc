"""The offsets pane: totals, reasons for missing values, keys, and refreshes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

import pytest

from kgctl.model.failure import RowError
from kgctl.model.watched import WatchedPartition
from kgctl.tui.widgets.group.offsets import NOTHING, OffsetsPane, total_line, why
from tests.kgctl.tui.panes import FAILED, UNCOMMITTED, Host, PaneScene, row

SMALL, LARGE = (80, 24), (160, 24)
# By partition 0, 1, 2, 10; by lag 1, 10, 2, 0.
FOUR = [
    row(partition=10, lag=300, committed=40, log_end=340, rate_in=5.0, rate_out=80.0, eta_s=4.0, client_id="b"),
    row(partition=0, lag=0, committed=10, log_end=10, rate_in=7.0, rate_out=7.0, eta_s=0.0, client_id="d"),
    row(partition=2, lag=20, committed=30, log_end=50, rate_in=6.0, rate_out=8.0, eta_s=10.0, client_id="a"),
    row(partition=1, lag=4_000, committed=20, log_end=4_020, rate_in=90.0, rate_out=9.0, eta_s=None, client_id="c"),
]


class Scene(PaneScene[OffsetsPane]):
    @property
    def order(self) -> list[int]:
        """The partitions from top to bottom."""
        return [int(line.split()[1]) for line in self.lines[2:-2] if line.strip()]

    @property
    def cursor(self) -> tuple[str, int] | None:
        found = self.pane.cursor_row
        return (found.topic, found.partition) if found else None

    async def show(self, partitions: Sequence[WatchedPartition], **more: str) -> None:
        self.pane.show(partitions, **more)
        await self._pilot.pause()


def at_a_pane(
    play: Callable[[Scene], Awaitable[None]],
    partitions: Sequence[WatchedPartition] = FOUR,
    size: tuple[int, int] = SMALL,
) -> None:
    async def run() -> None:
        app = Host(OffsetsPane(), lambda pane: pane.show(partitions))
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            await play(Scene(app, pilot))

    asyncio.run(run())


# ---- totals


def test_totals_of_all_partitions() -> None:
    assert total_line(FOUR) == "4 partitions \u00b7 lag 4,320 \u00b7 in 108/s \u00b7 out 104/s"
    assert total_line(FOUR[:1]) == "1 partition \u00b7 lag 300 \u00b7 in 5.0/s \u00b7 out 80/s"
    assert total_line([]) == ""


def test_totals_say_how_many_lags_are_known() -> None:
    assert "lag 300 (1 of 2 known)" in total_line([FOUR[0], row(**UNCOMMITTED)])
    assert total_line([row(**UNCOMMITTED)]) == "1 partition \u00b7 lag - \u00b7 in - \u00b7 out -"


def test_a_negative_lag_does_not_reduce_the_total() -> None:
    assert "lag 300 " in total_line([FOUR[0], row(partition=1, lag=-50)])


def test_totals_count_errors_and_show_the_first() -> None:
    failed = [row("t\x1b", 3, **FAILED), row("u", 4, **FAILED)]
    text = total_line([FOUR[0], *failed])
    assert "2 with an error" in text
    assert "3: its leader is not available (LEADER_NOT_AVAILABLE)" in text
    assert "\x1b" not in text


# ---- reasons


@pytest.mark.parametrize(
    ("partition", "reason"),
    [
        (row(), ""),
        (row(lag=0, eta_s=0.0), ""),
        (row(**UNCOMMITTED), "No offset is committed, so there is no lag. No member owns this partition."),
        (row(consumer_id=None, client_id=None), "No member owns this partition."),
        (row(log_end=None, lag=None, rate_in=None, rate_out=None, eta_s=None), "The log end offset is not known."),
        (row(rate_in=None, rate_out=None, eta_s=None), "Rates need two refreshes."),
        (row(eta_s=None), "No ETA: the lag does not shrink."),
        (row(lag=-3, eta_s=None), "The committed offset is beyond the log end: the topic was truncated or recreated."),
    ],
)
def test_each_missing_value_has_a_reason(partition: WatchedPartition, reason: str) -> None:
    assert why(partition) == reason


def test_an_error_comes_first_and_excludes_guesses() -> None:
    assert why(row(**FAILED)) == "Its leader is not available (LEADER_NOT_AVAILABLE)."
    nameless = {**FAILED, "error": RowError("UNKNOWN_TOPIC_OR_PARTITION", ""), "consumer_id": None}
    assert why(row(**nameless)) == "UNKNOWN_TOPIC_OR_PARTITION. No member owns this partition."


# ---- the table


def test_partitions_are_sorted_by_number() -> None:
    async def play(scene: Scene) -> None:
        assert scene.order == [0, 1, 2, 10]
        assert scene.cursor == ("orders", 0)

    at_a_pane(play)


def test_offsets_lag_rates_and_eta_of_a_partition() -> None:
    async def play(scene: Scene) -> None:
        (line,) = [line for line in scene.lines[2:-2] if line.strip()]
        assert line.split()[:5] == ["orders", "0", "9,000", "10,200", "1,200"]
        assert line.split()[-5:] == ["80", "100", "1", "min", "worker-1"]
        assert "\u2588" in line, "the trend"

    at_a_pane(play, [row(topic="orders")], LARGE)


def test_a_narrow_terminal_shows_the_hidden_columns_in_words() -> None:
    async def play(scene: Scene) -> None:
        assert scene.lines[1].split()[:5] == ["TOPIC", "PARTITION\u2191", "COMMITTED", "END", "LAG"]
        assert "MEMBER" not in scene.lines[1]
        text = "orders 0 \u00b7 lag 1,200 \u00b7 in 80/s \u00b7 out 100/s \u00b7 ETA 1 min \u00b7 member worker-1"
        assert scene.lines[-2].strip() == text
        assert scene.lines[-1].strip() == ""

    at_a_pane(play, [row()])


def test_a_number_too_long_for_its_column_gets_a_unit() -> None:
    async def play(scene: Scene) -> None:
        (line,) = [line for line in scene.lines[2:-2] if line.strip()]
        assert line.split()[2:5] == ["9,999,999,999", "1.2T", "1.19T"]
        assert "\u2026" not in line

    at_a_pane(play, [row(committed=9_999_999_999, log_end=1_200_000_000_000, lag=1_190_000_000_001)])


def test_a_partition_with_an_error_is_recognizable_without_colour() -> None:
    async def play(scene: Scene) -> None:
        assert " error" in scene.lines[2]
        assert scene.pane.why.startswith("Its leader is not available")
        assert scene.lines[-1].strip() == scene.pane.why

    at_a_pane(play, [row(**FAILED)])


# ---- keys


def test_s_sorts_by_each_visible_column() -> None:
    async def play(scene: Scene) -> None:
        orders = []
        for _ in range(8):
            await scene.press("s")
            orders.append(scene.order)
        assert orders == [
            [10, 2, 1, 0],  # committed
            [1, 10, 2, 0],  # log end
            [1, 10, 2, 0],  # lag
            [1, 0, 2, 10],  # rate in
            [10, 1, 2, 0],  # rate out
            [2, 10, 0, 1],  # ETA, unknown last
            [2, 10, 1, 0],  # client id
            [0, 1, 2, 10],
        ]

    at_a_pane(play, size=LARGE)


def test_s_skips_hidden_columns() -> None:
    async def play(scene: Scene) -> None:
        titles = []
        for _ in range(5):
            await scene.press("s")
            (title,) = [title for title in scene.lines[1].split() if title[-1] in "\u2191\u2193"]
            titles.append(title[:-1])
        assert "MEMBER" not in titles
        assert titles[:3] == ["COMMITTED", "END", "LAG"]
        assert "PARTITION" in titles

    at_a_pane(play)


def test_shift_s_reverses_the_order_and_unknown_values_stay_last() -> None:
    async def play(scene: Scene) -> None:
        await scene.press("S")
        assert scene.order == [10, 2, 1, 0]
        await scene.press("S")
        assert scene.order == [0, 1, 2, 10]
        await scene.show([*FOUR, row(partition=5, **UNCOMMITTED)])
        await scene.press("s", "s", "s", "S")
        assert scene.order == [0, 2, 10, 1, 5]

    at_a_pane(play)


def test_partitions_of_equal_lag_are_sorted_by_number() -> None:
    async def play(scene: Scene) -> None:
        await scene.press("S", "s", "s", "s")
        assert scene.order == [0, 1, 2, 3]

    at_a_pane(play, [row(partition=number) for number in (3, 1, 0, 2)])


def test_the_selected_partition_is_described_in_words() -> None:
    async def play(scene: Scene) -> None:
        for key, partition in (("j", 1), ("G", 10), ("home", 0)):
            await scene.press(key)
            assert scene.cursor == ("orders", partition)
            assert scene.lines[-2].strip().startswith(f"orders {partition} \u00b7 ")
        await scene.press("j")
        assert scene.pane.why == "No ETA: the lag does not shrink."
        assert scene.lines[-1].strip() == scene.pane.why

    at_a_pane(play)


# ---- refreshes


def test_a_refresh_keeps_the_cursor_on_its_partition_and_the_order() -> None:
    async def play(scene: Scene) -> None:
        await scene.press("s", "s", "s", "home", "j")
        assert scene.cursor == ("orders", 10)
        await scene.show([*(one for one in FOUR if one.partition != 10), row(partition=10, lag=9_000), row("audit", 7)])
        assert scene.cursor == ("orders", 10)
        assert scene.order == [10, 1, 7, 2, 0]
        assert "lag 9,000" in scene.lines[-2]

    at_a_pane(play)


def test_an_unchanged_refresh_redraws_nothing() -> None:
    async def play(scene: Scene) -> None:
        before = scene.app.redraws
        await scene.show([replace(one) for one in FOUR])
        await scene.show([replace(one) for one in FOUR])
        assert scene.app.redraws == before
        await scene.show(FOUR[:3])
        assert scene.app.redraws > before

    at_a_pane(play)


def test_equal_partition_numbers_of_two_topics_are_two_rows() -> None:
    async def play(scene: Scene) -> None:
        assert scene.cursor == ("a", 0)
        await scene.show([row("b", 0), row("a", 0), row("a", 1)])
        assert scene.cursor == ("a", 0)
        await scene.press("G")
        await scene.show([row("b", 0), row("a", 0)])
        assert scene.cursor == ("b", 0)

    at_a_pane(play, [row("b", 0), row("a", 0)])


def test_an_empty_pane_shows_a_sentence_and_has_no_selection() -> None:
    async def play(scene: Scene) -> None:
        assert scene.cursor is None
        assert NOTHING in scene.text
        assert scene.pane.why == ""
        await scene.press("j", "G", "s", "S", "enter")
        await scene.show([], empty="Its offsets could not be read.")
        assert "Its offsets could not be read." in scene.text
        await scene.show(FOUR)
        assert "4 partitions" in scene.lines[0]
        await scene.show([])
        assert "".join(scene.lines[0] + scene.lines[-2] + scene.lines[-1]).strip() == ""

    at_a_pane(play, [])


def test_names_are_never_terminal_commands_or_markup() -> None:
    evil = {"client_id": "[bold]c[/bold]\x1b]0;x\x07", "error": RowError("E", "[red]why[/red]\x1b[2J\n")}

    async def play(scene: Scene) -> None:
        assert not set("\x1b\x07\u202e") & set(scene.text)
        assert "[red]t[/red]" in scene.lines[2]
        assert "[bold]c[/bold]" in scene.lines[2]
        assert "[red]why[/red]" in scene.lines[0]
        assert "[red]why[/red]" in scene.lines[-1]
        assert scene.cursor == ("[red]t[/red]\x1b[31m\u202e", 0)

    at_a_pane(play, [row("[red]t[/red]\x1b[31m\u202e", 0, **evil)], (200, 24))
