"""Which partitions are read at the same time, so that open files and memory stay few. Pure."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping

from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.archive.layout import ArchivedFile

# At most about 10 MB of memory each.
MOST_OPEN = 16


def most_open(files: Iterable[ArchivedFile], start: int) -> int:
    """How many files of a partition are read at the same time from offset `start` on: those whose offsets overlap.

    The files are in the order of their first offsets.
    """
    most, ends = 0, list[int]()
    for file in files:
        if file.last_offset < start:
            continue
        while ends and ends[0] < file.first_offset:
            heapq.heappop(ends)
        heapq.heappush(ends, file.last_offset)
        most = max(most, len(ends))
    return most


def portions(counts: Mapping[TopicPartition, int], most: int = MOST_OPEN) -> Iterator[list[TopicPartition]]:
    """All partitions in their order, a few at a time. `counts` is how many files each opens."""
    some: list[TopicPartition] = []
    total = 0
    for partition, count in sorted(counts.items()):
        if some and total + count > most:
            yield some
            some, total = [], 0
        some.append(partition)
        total += count
    if some:
        yield some
