"""The heights in a chart of lags: growth that the verdict names is visible."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgctl.tui.widgets.charts.sparkline import sparkline
from kgctl.watch.trend import LEVEL, levels


@pytest.mark.parametrize(
    ("lags", "rate_in", "expected"),
    [
        ([], 5.0, ()),
        ([0, 0], 5.0, (0.0, 0.0)),
        ([None, 4, 8], 0.0, (None, 0.5, 1.0)),
        ([0, 50, 100], 0.0, (0.0, 0.5, 1.0)),
        ([100_000, 100_300, 100_500], 100.0, (LEVEL, LEVEL, LEVEL)),
        ([100_000, 100_800, 101_600], 100.0, (0.2, 0.6, 1.0)),
        ([100_000, 101_000], None, (LEVEL, LEVEL)),
        ([-5, 10], 0.0, (0.0, 1.0)),
    ],
)
def test_a_series_has_heights(lags: list[float | None], rate_in: float | None, expected: tuple[float | None]) -> None:
    assert levels(lags, rate_in) == pytest.approx(expected)


def test_a_large_lag_that_grows_slowly_is_seen_to_grow() -> None:
    lags = [180_000 + 316 * n for n in range(30)]  # +158/s every 2 s
    line = sparkline(levels(lags, 200.0), 30)
    assert line[0] < line[15] < line[29]


@given(st.lists(st.one_of(st.none(), st.floats(0, 1e9)), max_size=60), st.one_of(st.none(), st.floats(0, 1e6)))
def test_heights_keep_the_order_and_stay_between_0_and_1(lags: list[float | None], rate_in: float | None) -> None:
    found = levels(lags, rate_in)
    assert [one is None for one in found] == [one is None for one in lags]
    pairs = sorted((lag, height) for lag, height in zip(lags, found, strict=True) if lag is not None)
    heights = [height for _, height in pairs if height is not None]
    assert heights == sorted(heights)
    assert all(0 <= height <= 1 for height in heights)
