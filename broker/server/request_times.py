"""Request times: how often each request ran, and how long it took, in buckets that grow by a quarter of a power of two."""

from __future__ import annotations

# Stands for flushes, which have no api key.
FLUSH = -2
BUCKETS = 128
LONGEST_US = 2**31 - 1


class RequestTimes:
    """Counts since the start. `broker.protocol.latency_buckets` says which times a bucket stands for.

    After the buckets, each list has the sum of all times in microseconds.
    """

    __slots__ = ("counts",)

    def __init__(self) -> None:
        self.counts: dict[int, list[int]] = {}

    def add(self, key: int, seconds: float) -> None:
        """It runs for every request: a call of another function would double its cost."""
        us = int(seconds * 1e6)
        if us < 8:
            bucket = us if us > 0 else 0
        elif us < LONGEST_US:
            bits = us.bit_length()
            bucket = bits << 2 | us >> bits - 3 & 3
        else:
            bucket = BUCKETS - 1
        counts = self.counts.get(key)
        if counts is None:
            counts = self.counts[key] = [0] * (BUCKETS + 1)
        counts[bucket] += 1
        counts[BUCKETS] += us
