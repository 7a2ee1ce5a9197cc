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
    """What came in and went out of some partitions over the last WINDOW_S; looks that are further apart make it longer."""

    __slots__ = ("_came", "_is_in_known", "_is_out_known", "_samples", "_went")

    def __init__(self) -> None:
        self._samples: deque[Sample] = deque()
        self._came = self._went = 0
        self._is_in_known = self._is_out_known = False

    def add(self, at_s: float, came: int | None, went: int | None, lag: int) -> None:
        """A look: the records in and out since the one before, None where that is not known. One that is no later is left out."""
        samples = self._samples
        if samples and at_s <= samples[-1][0]:
            return
        self._is_in_known, self._is_out_known = came is not None, went is not None
        self._came += came or 0
        self._went += went or 0
        if len(samples) > 1 and samples[-1][0] - samples[-2][0] < _SPACING_S:
            samples.pop()
        samples.append((at_s, self._came, self._went, lag))
        while len(samples) > 2 and samples[0][0] < at_s - WINDOW_S:
            samples.popleft()

    @property
    def span_s(self) -> float:
        return self._samples[-1][0] - self._samples[0][0] if self._samples else 0.0

    @property
    def came(self) -> int:
        """Records that came in during the window."""
        return self._samples[-1][1] - self._samples[0][1] if self._samples else 0

    @property
    def went(self) -> int:
        """Records that were read during the window."""
        return self._samples[-1][2] - self._samples[0][2] if self._samples else 0

    @property
    def rate_in(self) -> float | None:
        """Records/s, never negative; None before two looks know the same partition."""
        span_s = self.span_s
        return self.came / span_s if self._is_in_known and span_s else None

    @property
    def rate_out(self) -> float | None:
        """Records/s, never negative; None before two looks know the commits of the same partition."""
        span_s = self.span_s
        return self.went / span_s if self._is_out_known and span_s else None

    def is_lag_rising(self) -> bool:
        """Whether both the least and the greatest lag of the newer half of the window are above those of the older half."""
        middle_s = self._samples[0][0] + self.span_s / 2 if self._samples else 0.0
        older = [sample[3] for sample in self._samples if sample[0] < middle_s]
        newer = [sample[3] for sample in self._samples if sample[0] >= middle_s]
        return bool(older and newer) and min(newer) > min(older) and max(newer) > max(older)


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
