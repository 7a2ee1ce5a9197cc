"""minOffsetsPerTrigger and maxTriggerDelay: a micro-batch waits for more records, but not forever. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from kgctl.model.topic_partition import TopicPartition

Offsets = Mapping[TopicPartition, int]


class TriggerDelay:
    """Times in seconds of any clock. The first batch of a query does not wait."""

    def __init__(self, min_offsets: int, max_delay_s: float) -> None:
        self._min_offsets, self._max_delay_s = min_offsets, max_delay_s
        self._last: float | None = None

    def is_over(self, reached: Offsets, ends: Offsets, now: float) -> bool:
        """Whether a batch from `reached` to `ends` may start now. After True, the next one waits again."""
        waiting = sum(max(0, end - reached.get(partition, 0)) for partition, end in ends.items())
        if self._last is not None and waiting < self._min_offsets and now - self._last < self._max_delay_s:
            return False
        # Only batches with records count: the delay is the time for which records wait.
        if waiting or self._last is None:
            self._last = now
        return True
