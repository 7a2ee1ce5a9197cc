"""Archived records on their way to a topic: runs of one partition, the filter that they pass, and the order between partitions. Pure."""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kgctl.client.producer.records import Headers
from kgctl.model.topic_partition import TopicPartition

NO_TIMESTAMP = -1


@dataclass(frozen=True, slots=True)
class Run:
    """Records of one partition of the archive in offset order, column by column; timestamps in ms since 1970.

    `next_offset` is where the partition continues: everything below it was in this run or before, or was left out.
    """

    partition: TopicPartition
    offsets: list[int]
    timestamps: list[int]
    keys: list[bytes | None]
    values: list[bytes | None]
    headers: list[Headers]
    next_offset: int

    def __len__(self) -> int:
        return len(self.offsets)

    def cut(self, most: int) -> Iterator[Run]:
        """The same records in runs of at most `most` records."""
        if len(self) <= most:
            yield self
            return
        for start in range(0, len(self), most):
            end = start + most
            is_last = end >= len(self)
            yield Run(
                self.partition,
                self.offsets[start:end],
                self.timestamps[start:end],
                self.keys[start:end],
                self.values[start:end],
                self.headers[start:end],
                self.next_offset if is_last else self.offsets[end],
            )


@dataclass(frozen=True, slots=True)
class RecordFilter:
    """Which records to replay: those with one of the keys or a key that matches, from `since_ms` up to, but without, `until_ms`.

    Without keys and pattern, all keys and also records without a key.
    """

    keys: frozenset[bytes] = frozenset()
    pattern: re.Pattern[bytes] | None = None
    since_ms: int | None = None
    until_ms: int | None = None

    @property
    def is_empty(self) -> bool:
        return not self.keys and self.pattern is None and self.since_ms is None and self.until_ms is None

    def overlaps(self, min_timestamp_ms: int, max_timestamp_ms: int) -> bool:
        """Whether any timestamp of this range passes."""
        is_late = self.since_ms is not None and max_timestamp_ms < self.since_ms
        return not is_late and (self.until_ms is None or min_timestamp_ms < self.until_ms)

    def passes(self, key: bytes | None, timestamp_ms: int) -> bool:
        if self.since_ms is not None and timestamp_ms < self.since_ms:
            return False
        if self.until_ms is not None and timestamp_ms >= self.until_ms:
            return False
        if not self.keys and self.pattern is None:
            return True
        if key is None:
            return False
        return key in self.keys or (self.pattern is not None and self.pattern.fullmatch(key) is not None)

    def of(self, run: Run) -> Run:
        """The records of a run that pass. The position stays that of the whole run."""
        if self.is_empty:
            return run
        kept = [n for n, (key, time) in enumerate(zip(run.keys, run.timestamps, strict=True)) if self.passes(key, time)]
        if len(kept) == len(run):
            return run
        return Run(
            run.partition,
            [run.offsets[n] for n in kept],
            [run.timestamps[n] for n in kept],
            [run.keys[n] for n in kept],
            [run.values[n] for n in kept],
            [run.headers[n] for n in kept],
            run.next_offset,
        )


def in_time_order(partitions: Iterable[Iterator[Run]]) -> Iterator[Run]:
    """The runs of all partitions, the one whose first record is oldest first; each partition keeps its own order.

    Within a partition timestamps may go back: there a record counts as old as the newest one before it.
    """
    waiting: list[tuple[int, int, Run, Iterator[Run]]] = []

    def push(number: int, runs: Iterator[Run], newest: int) -> None:
        run = next(runs, None)
        if run is not None:
            first = max(newest, run.timestamps[0]) if run.timestamps else newest
            heapq.heappush(waiting, (first, number, run, runs))

    for number, runs in enumerate(partitions):
        push(number, runs, NO_TIMESTAMP)
    while waiting:
        first, number, run, runs = heapq.heappop(waiting)
        yield run
        push(number, runs, max(first, max(run.timestamps, default=NO_TIMESTAMP)))
