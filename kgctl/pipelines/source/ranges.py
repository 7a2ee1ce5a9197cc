"""Ranges of offsets: splits them into tasks, and distributes the limit of a micro-batch. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from kgctl.model.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """From `start` up to, but not including, `end`."""

    partition: TopicPartition
    start: int
    end: int

    @property
    def size(self) -> int:
        return max(0, self.end - self.start)


def split(
    ranges: Sequence[OffsetRange], min_partitions: int | None, max_records: int | None = None
) -> list[OffsetRange]:
    """The ranges that are not empty, split evenly: none longer than `max_records`, and about `min_partitions` if fewer."""
    filled = [one for one in ranges if one.size]
    if max_records is not None:
        filled = [part for one in filled for part in _cut(one, -(-one.size // max_records))]
    if min_partitions is None or len(filled) >= min_partitions:
        return filled
    total = sum(one.size for one in filled)
    return [part for one in filled for part in _cut(one, max(1, round(one.size * min_partitions / total)))]


def _cut(whole: OffsetRange, parts: int) -> list[OffsetRange]:
    parts = min(whole.size, parts)
    cuts = [whole.start + whole.size * number // parts for number in range(parts + 1)]
    return [replace(whole, start=start, end=end) for start, end in pairwise(cuts)]


def share(ranges: Iterable[OffsetRange], most: int) -> dict[TopicPartition, int]:
    """The end of each partition so that together they have `most` offsets, in proportion to their sizes."""
    ranges = sorted(ranges, key=lambda one: one.partition)
    total = sum(one.size for one in ranges)
    if total <= most:
        return {one.partition: max(one.start, one.end) for one in ranges}
    shares = {one.partition: one.size * most // total for one in ranges}
    left = most - sum(shares.values())
    # The remainder goes to the largest fractions, so that small partitions get their turn too.
    for one in sorted(ranges, key=lambda one: -(one.size * most % total))[:left]:
        shares[one.partition] += 1
    return {one.partition: one.start + shares[one.partition] for one in ranges}


def to_json(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    """The form in which Spark's Kafka source writes offsets to a checkpoint: {"topic": {"0": 123}}."""
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
