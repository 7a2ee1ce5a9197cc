"""Percentiles of any number of latencies in a bounded amount of memory."""

from __future__ import annotations

import math
from collections import Counter

from broker.light_named_tuples import NamedTuple

# Buckets grow by 1 %, so a percentile is at most 1 % above the exact one.
_PER_LOG = 1 / math.log(1.01)


class Percentiles(NamedTuple):
    p50_ms: float
    p95_ms: float
    p99_ms: float
    max_ms: float


class Latencies:
    """A histogram. `add` takes seconds."""

    def __init__(self) -> None:
        self._buckets: Counter[int] = Counter()
        self._max_s = 0.0
        self.count = 0

    def add(self, seconds: float) -> None:
        micros = seconds * 1e6
        self._buckets[math.ceil(math.log(micros) * _PER_LOG) if micros > 1 else 0] += 1
        self.count += 1
        self._max_s = max(self._max_s, seconds)

    def percentiles(self) -> Percentiles | None:
        """None without latencies."""
        if not self.count:
            return None
        ordered = sorted(self._buckets.items())
        p50, p95, p99 = (self._at(ordered, part) for part in (0.5, 0.95, 0.99))
        return Percentiles(p50, p95, p99, _ms(self._max_s))

    def _at(self, ordered: list[tuple[int, int]], part: float) -> float:
        rank, seen = math.ceil(self.count * part), 0
        for bucket, count in ordered:
            seen += count
            if seen >= rank:
                return _ms(min(self._max_s, math.exp(bucket / _PER_LOG) / 1e6))
        return _ms(self._max_s)


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)
