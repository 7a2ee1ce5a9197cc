"""Chooses a partition for records without a key: one for a while, then another (KIP-480), busy partitions less often (KIP-794)."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate


class StickyPartition:
    """Of one topic. All records go to one partition until about a batch is full: records spread one by one would make small batches.

    With `adaptive` (partitioner.adaptive.partitioning.enable), a partition whose queue is longer is chosen less often.
    """

    def __init__(self, batch_bytes: int, randomness: random.Random, *, adaptive: bool = True) -> None:
        self._batch_bytes = max(1, batch_bytes)
        self._random = randomness
        self._adaptive = adaptive
        self._sent_bytes = 0
        self.current: int | None = None

    def choose(self, available: Sequence[int], queued: Sequence[int], count: int) -> int:
        """Another partition. `queued` has the number of queued batches of each one in `available`, of `count` in all."""
        self._sent_bytes = 0
        if not available:
            self.current = self._random.randrange(count)
        elif self._adaptive and count > 1 and (len(set(queued)) > 1 or len(available) < count):
            # An empty queue weighs as much as the longest is long.
            most = max(queued) + 1
            sums = list(accumulate(most - size for size in queued))
            self.current = available[bisect_right(sums, self._random.randrange(sums[-1]))]
        else:
            self.current = available[self._random.randrange(len(available))]
        return self.current

    def sent(self, size_bytes: int, *, at_boundary: bool) -> bool:
        """Count a record. True if it is time to choose: best when a batch is full, so that no small ones are left behind."""
        self._sent_bytes += size_bytes
        limit = self._batch_bytes
        return (self._sent_bytes >= limit and at_boundary) or self._sent_bytes >= 2 * limit
