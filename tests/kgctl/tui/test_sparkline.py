"""Sparklines: the requested width, scaled to the visible values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgctl.tui.widgets.charts.sparkline import BLOCKS, GAP, LEVEL, sparkline

SERIES = st.lists(st.none() | st.integers(min_value=-5, max_value=10**12), max_size=40)


def test_the_newest_value_is_on_the_right_and_old_values_are_dropped() -> None:
    assert sparkline([7, 0, 0, 8], 3) == "▁▁█"


def test_a_short_series_is_padded_on_the_left() -> None:
    assert sparkline([0, 8], 5) == "   ▁█"


def test_the_scale_is_the_maximum_of_the_visible_values() -> None:
    assert sparkline([1000, 0, 5, 10], 3) == sparkline([0, 50, 100], 3)


def test_a_steady_rise_climbs_block_by_block() -> None:
    assert sparkline(range(8), 8) == BLOCKS


@pytest.mark.parametrize("values", [[0, 0, 0], [-3, 0, -1]])
def test_zero_and_negative_values_are_the_lowest_block(values: list[int]) -> None:
    assert sparkline(values, 3) == "▁▁▁"


@pytest.mark.parametrize("values", [[5, 5, 5], [1_000_000, 1_000_003, 999_990], [1, 1, 1]])
def test_a_series_that_hardly_varies_is_a_level_line(values: list[int]) -> None:
    assert sparkline(values, 3) == LEVEL * 3


def test_a_change_of_one_block_is_visible() -> None:
    assert sparkline([800, 701], 2) == LEVEL * 2
    assert sparkline([800, 700], 2) == "█▇"


def test_unknown_values_are_gaps() -> None:
    assert sparkline([4, None, 0], 3) == f"█{GAP}▁"
    assert sparkline([None, None], 3) == GAP * 3
    assert sparkline([], 2) == GAP * 2


@pytest.mark.parametrize("width", [0, -1])
def test_without_width_it_is_empty(width: int) -> None:
    assert sparkline([1, 2], width) == ""


@given(SERIES, st.integers(min_value=0, max_value=50))
def test_the_width_is_exact_and_the_order_of_values_is_kept(values: list[int | None], width: int) -> None:
    line = sparkline(values, width)
    assert len(line) == width
    shown = values[-width:] if width else []
    drawn = list(zip(shown, line[width - len(shown) :], strict=True))
    assert all((value is None) == (sign == GAP) for value, sign in drawn)
    known = sorted((max(value, 0), sign) for value, sign in drawn if value is not None)
    signs = [sign for _, sign in known]
    assert signs == sorted(signs)
