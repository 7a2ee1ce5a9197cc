"""Rates of records over the last minute: appended, by log end offsets, and consumed, by committed offsets.

An offset that moves back (a recreated topic, a reset) counts as no records, so rates are never negative. A partition counts
from the second snapshot that knows its offsets. A reset to a later offset looks like consumption and counts as such.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from kgctl.model.groups import PartitionLag

WINDOW_S = 60.0
# The number of samples per window does not depend on the refresh interval: 10,000 groups have a window each.
SAMPLES = 15
_SPACING_S = WINDOW_S / SAMPLES
# Commits and batches of records arrive in bursts: over less than this, a rate says nothing.
LEAST_SPAN_S = 3.0

Sample = tuple[float, int, int, int, int]
"""at_s, records in and out since the first snapshot, the lowest and the highest lag since the sample before."""


class Throughput:
    """Records in and out of some partitions over the last WINDOW_S, or over two snapshots if these are further apart.

    `records_in` and `records_out` count the records of the window; `span_s` is its length. `rate_in` and `rate_out` are in
    records/s, and None until two snapshots know the log ends, or the commits, of the same partition, and the window has LEAST_SPAN_S.
    """

    __slots__ = ("_samples", "_total_in", "_total_out", "rate_in", "rate_out", "records_in", "records_out", "span_s")

    def __init__(self) -> None:
        self._samples: deque[Sample] = deque()
        self._total_in = self._total_out = 0
        self.records_in = self.records_out = 0
        self.span_s = 0.0
        self.rate_in: float | None = None
        self.rate_out: float | None = None

    def add(self, at_s: float, records_in: int | None, records_out: int | None, lag: int) -> None:
        """Add a snapshot: records in and out since the previous one (None if not known). Ignores one that is not newer."""
        samples = self._samples
        if samples and at_s <= samples[-1][0]:
            return
        self._total_in += records_in or 0
        self._total_out += records_out or 0
        low = high = lag
        if len(samples) > 1 and samples[-1][0] - samples[-2][0] < _SPACING_S:
            replaced = samples.pop()
            low, high = min(low, replaced[3]), max(high, replaced[4])
        samples.append((at_s, self._total_in, self._total_out, low, high))
        while len(samples) > 2 and samples[0][0] < at_s - WINDOW_S:
            samples.popleft()
        from_s, from_in, from_out = samples[0][:3]
        span_s = self.span_s = at_s - from_s
        self.records_in, self.records_out = self._total_in - from_in, self._total_out - from_out
        is_long = span_s >= LEAST_SPAN_S
        self.rate_in = None if records_in is None or not is_long else self.records_in / span_s
        self.rate_out = None if records_out is None or not is_long else self.records_out / span_s

    def is_lag_rising(self) -> bool:
        """Whether every lag in the newer half of the window is above all lags in the older half.

        Infrequent commits make the lag a sawtooth; a sawtooth is not rising and must not raise an alarm.
        """
        samples = list(self._samples)
        older, newer = samples[: len(samples) // 2], samples[len(samples) // 2 :]
        return bool(older) and min(sample[3] for sample in newer) > max(sample[4] for sample in older)


def advance(before: int | None, now: int | None) -> int | None:
    """Records between two offsets of one partition; 0 if the offset moved back, None if one is not known."""
    return None if before is None or now is None else max(now - before, 0)


def eta_s(lag: int | None, rate_in: float | None, rate_out: float | None) -> float | None:
    """Seconds until the lag is zero; None if not known or if the lag does not shrink."""
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
    """Each row of `now` with the row of the same partition in `before`. Cheap when both have the same order, the usual case."""
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
