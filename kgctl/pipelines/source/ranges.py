"""Ranges of offsets: splitting them into tasks, and sharing out how much a micro-batch may read. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from kgctl.model.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """From `start` on and before `end`."""

    partition: TopicPartition
    start: int
    end: int

    @property
    def size(self) -> int:
        return max(0, self.end - self.start)


def split(ranges: Sequence[OffsetRange], min_partitions: int | None) -> list[OffsetRange]:
    """Ranges that are not empty, larger ones cut until there are about `min_partitions`; cuts lie close to each other."""
    filled = [one for one in ranges if one.size]
    if min_partitions is None or len(filled) >= min_partitions:
        return filled
    total = sum(one.size for one in filled)
    found = []
    for one in filled:
        parts = min(one.size, max(1, round(one.size * min_partitions / total)))
        cuts = [one.start + one.size * number // parts for number in range(parts + 1)]
        found += [replace(one, start=start, end=end) for start, end in pairwise(cuts)]
    return found


def share(ranges: Iterable[OffsetRange], most: int) -> dict[TopicPartition, int]:
    """The end of each partition so that all together have `most` offsets, each in proportion to what waits there."""
    ranges = sorted(ranges, key=lambda one: one.partition)
    total = sum(one.size for one in ranges)
    if total <= most:
        return {one.partition: max(one.start, one.end) for one in ranges}
    shares = {one.partition: one.size * most // total for one in ranges}
    left = most - sum(shares.values())
    # What rounding left over goes where most of an offset was cut off: a partition with little to read has its turn too.
    for one in sorted(ranges, key=lambda one: -(one.size * most % total))[:left]:
        shares[one.partition] += 1
    return {one.partition: one.start + shares[one.partition] for one in ranges}


def to_json(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    """As Spark's Kafka source writes them into a checkpoint: {"topic": {"0": 123}}."""
    found: dict[str, dict[str, int]] = {}
    for partition in sorted(offsets):
        found.setdefault(partition.topic, {})[str(partition.partition)] = offsets[partition]
    return found


def from_json(offsets: Mapping[str, Mapping[str, int]]) -> dict[TopicPartition, int]:
    return {
        TopicPartition(topic, int(number)): offset
        for topic, numbers in offsets.items()
        for number, offset in numbers.items()
    }
