"""Scales a series of lags for a chart, so that the chart agrees with the verdict: what counts as growth is visible."""

from __future__ import annotations

from collections.abc import Sequence

from kgctl.watch.limits import LIMITS

LEVEL = 0.5
# Values that stay above this share of their maximum are drawn from a base near their minimum, not from zero.
_NEAR = 0.5
# A change below this share of the maximum is not visible if the rate is not known.
_NOISE = 0.02
# How far below the minimum the base is, as a share of the range.
_MARGIN = 0.25


def levels(lags: Sequence[float | None], rate_in: float | None) -> tuple[float | None, ...]:
    """The heights of the values in a chart, 0 to 1, for all that it shows; None is a gap.

    A lag that changes by less than the records of LIMITS.growth_s seconds, which arrive between two commits, is a level line. A lag
    that changes by more fills the height: from zero if it fell to half or less, else from a base below its minimum. So a
    large lag that grows slowly is seen to grow, and a large one that hardly moves is no wall.
    """
    known = [max(value, 0.0) for value in lags if value is not None]
    top, bottom = max(known, default=0.0), min(known, default=0.0)
    noise = _NOISE * top if rate_in is None else LIMITS.growth_s * rate_in
    if top <= 0:
        return tuple(None if value is None else 0.0 for value in lags)
    if bottom > 0 and top - bottom <= noise:
        return tuple(None if value is None else LEVEL for value in lags)
    base = 0.0 if bottom <= _NEAR * top else bottom - _MARGIN * (top - bottom)
    return tuple(None if value is None else (max(value, 0.0) - base) / (top - base) for value in lags)
