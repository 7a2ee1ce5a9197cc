"""Rates of records over the last minute of looks: in by log ends, out by commits.

A log end or a commit that goes backwards (a recreated topic, a reset) counts as no records: rates are never negative. A
partition counts from the second look on that knows it. A reset forwards cannot be told from reading, and counts as it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from kgctl.model.groups import PartitionLag

WINDOW_S = 60.0
# Kept per window whatever the interval of looks is: 10,000 groups have a window each.
SAMPLES = 15
_SPACING_S = WINDOW_S / SAMPLES

Sample = tuple[float, int, int, int]  # at_s, records in and out since the first look, lag


class Pace:
    """What came in and went out of some partitions over the last WINDOW_S; looks that are further apart make it longer.

    `came` and `went` are the records of the window, `span_s` its length. `rate_in` and `rate_out` are records/s, never
    negative; None before two looks know the log ends, or the commits, of the same partition.
    """

    __slots__ = ("_samples", "_total_in", "_total_out", "came", "rate_in", "rate_out", "span_s", "went")

    def __init__(self) -> None:
        self._samples: deque[Sample] = deque()
        self._total_in = self._total_out = 0
        self.came = self.went = 0
        self.span_s = 0.0
        self.rate_in: float | None = None
        self.rate_out: float | None = None

    def add(self, at_s: float, came: int | None, went: int | None, lag: int) -> None:
        """A look: the records in and out since the one before, None where that is not known. One that is no later is left out."""
        samples = self._samples
        if samples and at_s <= samples[-1][0]:
            return
        self._total_in += came or 0
        self._total_out += went or 0
        if len(samples) > 1 and samples[-1][0] - samples[-2][0] < _SPACING_S:
            samples.pop()
        samples.append((at_s, self._total_in, self._total_out, lag))
        while len(samples) > 2 and samples[0][0] < at_s - WINDOW_S:
            samples.popleft()
        from_s, from_in, from_out, _ = samples[0]
        span_s = self.span_s = at_s - from_s
        self.came, self.went = self._total_in - from_in, self._total_out - from_out
        self.rate_in = None if came is None or not span_s else self.came / span_s
        self.rate_out = None if went is None or not span_s else self.went / span_s

    def is_lag_rising(self) -> bool:
        """Whether every lag of the newer half of the window is above all those of the older half.

        Commits that come seldom make it fall again and again, so that it is not: what is no more than that never alarms.
        """
        lags = [sample[3] for sample in self._samples]
        older, newer = lags[: len(lags) // 2], lags[len(lags) // 2 :]
        return bool(older) and min(newer) > max(older)


def gone_forward(before: int | None, now: int | None) -> int | None:
    """Records between two offsets of one partition, 0 if it went backwards, None if one is not known."""
    return None if before is None or now is None else max(now - before, 0)


def eta_s(lag: int | None, rate_in: float | None, rate_out: float | None) -> float | None:
    """Seconds until nothing is left to read; None where that is not known, or where the lag does not shrink."""
    if lag is None:
        return None
    if lag <= 0:
        return 0.0
    if rate_in is None or rate_out is None or rate_out <= rate_in:
        return None
    return lag / (rate_out - rate_in)


def paired(
    before: Sequence[PartitionLag], now: Sequence[PartitionLag]
) -> Iterator[tuple[PartitionLag | None, PartitionLag]]:
    """Each row of `now` with the one of the same partition in `before`. Their order is mostly the same, and then this is cheap."""
    found: dict[tuple[str | None, int | None], PartitionLag] | None = None
    known = len(before)
    for place, row in enumerate(now):
        if place < known:
            was = before[place]
            if was.partition == row.partition and was.topic == row.topic:
                yield was, row
                continue
        if found is None:
            found = {(was.topic, was.partition): was for was in before}
        yield found.get((row.topic, row.partition)), row
