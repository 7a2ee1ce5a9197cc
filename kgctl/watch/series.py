"""The lag and the rates of a group, or of a cluster, over the last ten minutes."""

from __future__ import annotations

from array import array
from math import isnan, nan

BUCKETS, BUCKET_S = 60, 10.0
# Snapshots further apart than this leave a gap.
BRIDGED = 6

Values = tuple[float | None, ...]
"""One value per bucket of BUCKET_S, oldest first; None where nothing is known."""
_NONE = array("d", [nan]) * BUCKETS
_NONE_SMALL = array("f", [nan]) * BUCKETS


class Series:
    """BUCKETS buckets of BUCKET_S each; a bucket keeps the newest values. About a kilobyte: 10,000 groups have a series each."""

    __slots__ = ("_bucket", "_lags", "_rates_in", "_rates_out")

    def __init__(self) -> None:
        self._bucket = -1
        self._lags, self._rates_in, self._rates_out = _NONE[:], _NONE_SMALL[:], _NONE_SMALL[:]

    def add(self, at_s: float, lag: float | None, rate_in: float | None, rate_out: float | None) -> None:
        """Add the values at a time that is not before the last one; None: not known."""
        bucket, newest = int(at_s // BUCKET_S), self._bucket
        values = (
            (self._lags, nan if lag is None else lag),
            (self._rates_in, nan if rate_in is None else rate_in),
            (self._rates_out, nan if rate_out is None else rate_out),
        )
        if 0 <= newest < bucket:
            is_bridged = bucket - newest <= BRIDGED
            for kept, _ in values:
                held = kept[newest % BUCKETS] if is_bridged else nan
                for between in range(max(newest + 1, bucket - BUCKETS), bucket):
                    kept[between % BUCKETS] = held
        for kept, value in values:
            kept[bucket % BUCKETS] = value
        self._bucket = bucket

    def lags(self, until_s: float | None = None) -> Values:
        """The lags up to a time, by default that of the newest values."""
        return self._values(self._lags, until_s)

    def rates_in(self, until_s: float | None = None) -> Values:
        return self._values(self._rates_in, until_s)

    def rates_out(self, until_s: float | None = None) -> Values:
        return self._values(self._rates_out, until_s)

    def _values(self, kept: array[float], until_s: float | None) -> Values:
        newest = self._bucket
        last = newest if until_s is None else int(until_s // BUCKET_S)
        if newest < 0:
            return (None,) * BUCKETS
        oldest = newest - BUCKETS
        found = [kept[one % BUCKETS] if oldest < one <= newest else nan for one in range(last - BUCKETS + 1, last + 1)]
        return tuple(None if isnan(one) else one for one in found)
