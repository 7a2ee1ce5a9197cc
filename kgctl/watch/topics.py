"""Topics over successive snapshots: rates, sizes, and the groups that read them."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence

from broker.light_dataclasses import replace
from broker.light_named_tuples import NamedTuple
from kgctl.model.groups import GroupDescription, PartitionLag
from kgctl.model.health import attention
from kgctl.model.lag import LagFacts, Retention
from kgctl.model.topic_partition import TopicPartition
from kgctl.model.topics import TopicPartitionRow, TopicRow
from kgctl.model.watched import WatchedGroup
from kgctl.model.watched_topics import (
    PartitionReader,
    TopicReader,
    TopicsSnapshot,
    TopicStorage,
    WatchedTopic,
    WatchedTopicPartition,
)
from kgctl.watch.cluster import ClusterView
from kgctl.watch.lag import GROUP, Sample, lag_rows, summed
from kgctl.watch.rates import LEAST_SPAN_S, WINDOW_S

# Of the snapshots of the window, this many are kept: a rate needs only the ends, and a cluster may have 10,000 partitions.
_KEPT = 6
NO_STORAGE = TopicStorage(0)


class _Ends(NamedTuple):
    at_s: float
    offsets: dict[TopicPartition, int]


class TopicsWatch:
    """Add snapshots of topics, of storage, and views of the groups, in any order; read rows of the newest ones."""

    def __init__(self) -> None:
        self.snapshot: TopicsSnapshot | None = None
        self.storage = NO_STORAGE
        self._sizes: dict[str, int] = {}
        self._oldest: dict[str, int] = {}
        self._ends: deque[_Ends] = deque()
        self._partitions: dict[str, list[TopicPartitionRow]] = {}
        self._groups: Mapping[str, GroupDescription] = {}
        self._rates: dict[TopicPartition, float] = {}
        self._view: ClusterView | None = None
        self._verdicts: Mapping[str, WatchedGroup] = {}
        self._readers: dict[str, list[str]] = {}

    def add(self, snapshot: TopicsSnapshot) -> None:
        if self.snapshot is not None and snapshot.at_s < self.snapshot.at_s:
            # A replay went back.
            self._ends.clear()
        self.snapshot = snapshot
        self._partitions = defaultdict(list)
        for row in snapshot.partitions:
            if row.partition is not None:
                self._partitions[row.topic].append(row)
        ends = {_key(row): row.log_end_offset for row in snapshot.partitions if row.log_end_offset is not None}
        self._add_ends(_Ends(snapshot.at_s, ends))

    def _add_ends(self, newest: _Ends) -> None:
        kept = self._ends
        if kept:
            # A log that became shorter belongs to a topic that was created again.
            for key in [key for key, end in kept[-1].offsets.items() if newest.offsets.get(key, end) < end]:
                for one in kept:
                    one.offsets.pop(key, None)
            if len(kept) > 1 and newest.at_s - kept[-2].at_s < WINDOW_S / _KEPT:
                kept.pop()
        kept.append(newest)
        while len(kept) > 2 and kept[1].at_s <= newest.at_s - WINDOW_S:
            kept.popleft()
        self._rates = self._rates_of(newest)

    def _rates_of(self, newest: _Ends) -> dict[TopicPartition, float]:
        """Each partition's rate since the oldest sample that has it."""
        rates: dict[TopicPartition, float] = {}
        ends = newest.offsets
        for one in self._ends:
            span_s = newest.at_s - one.at_s
            if span_s < LEAST_SPAN_S or len(rates) == len(ends):
                break
            for key, end in one.offsets.items():
                if key not in rates and key in ends:
                    rates[key] = (ends[key] - end) / span_s
        return rates

    def add_storage(self, storage: TopicStorage) -> None:
        self.storage = storage
        self._sizes, self._oldest = {}, {}
        for key, size in storage.log_bytes.items():
            self._sizes[key.topic] = self._sizes.get(key.topic, 0) + size
        for key, time in storage.oldest.items():
            self._oldest[key.topic] = min(self._oldest.get(key.topic, time), time)

    def add_groups(self, view: ClusterView) -> None:
        if view is self._view:
            return
        self._view = view
        self._groups = {name: one for name, one in view.snapshot.groups.items() if one.error is None}
        self._verdicts = {row.group: row for row in view.rows}
        readers: dict[str, list[str]] = defaultdict(list)
        for name, group in self._groups.items():
            for topic in {row.topic for row in group.partitions if row.topic} | (group.subscribed or frozenset()):
                readers[topic].append(name)
        self._readers = {topic: sorted(names, key=self._attention) for topic, names in readers.items()}

    # ---- rows

    def topics(self) -> list[WatchedTopic]:
        return [self._topic(row) for row in self.snapshot.topics] if self.snapshot else []

    def partitions(self, topic: str) -> list[WatchedTopicPartition]:
        readers = self._partition_readers(topic)
        return [
            WatchedTopicPartition(
                topic,
                key.partition,
                row.leader,
                row.replicas,
                row.isr,
                row.log_start_offset,
                row.log_end_offset,
                self.storage.log_bytes.get(key),
                self.rate_in([key]),
                tuple(sorted(readers.get(key.partition, ()), key=lambda one: (-(one.lag or 0), one.group))),
                row.error,
            )
            for row in self._partitions.get(topic, ())
            if (key := _key(row))
        ]

    def readers(self, topic: str) -> list[TopicReader]:
        """The groups that read the topic, the one that needs attention most first."""
        rows = summed(lag_rows([self._sample(topic)], self._facts(topic)), GROUP) if self._readers.get(topic) else []
        found = {row.group: row for row in rows}
        starts = {_key(row): row.log_start_offset or 0 for row in self._partitions.get(topic, ())}
        readers = []
        for name in self._readers.get(topic, ()):
            row, verdict = found.get(name), self._verdicts.get(name)
            deleted = [
                starts.get(TopicPartition(topic, one.partition or 0), 0) - one.current_offset
                for one in self._of(name, topic)
                if one.current_offset is not None
            ]
            readers.append(
                TopicReader(
                    name,
                    verdict.health if verdict else None,
                    verdict.members if verdict else None,
                    row.lag if row else None,
                    row.time_lag_ms if row else None,
                    row.headroom_ms if row else None,
                    sum(max(0, one) for one in deleted),
                )
            )
        return readers

    def rate_in(self, keys: Iterable[TopicPartition]) -> float | None:
        """Records/s that arrive in these partitions; None if it is not known for any of them."""
        rates = [rate for key in keys if (rate := self._rates.get(key)) is not None]
        return sum(rates) if rates else None

    # ---- parts

    def _attention(self, group: str) -> tuple[object, ...]:
        row = self._verdicts.get(group)
        return attention(row.health, row.uncommitted_records or row.lag, group) if row else attention(None, None, group)

    def _topic(self, row: TopicRow) -> WatchedTopic:
        partitions = self._partitions.get(row.topic, ())
        records = [one.records for one in partitions if one.records is not None]
        oldest = self._oldest.get(row.topic)
        readers = tuple(self._readers.get(row.topic, ()))
        worst = self._verdicts.get(readers[0]) if readers else None
        return WatchedTopic(
            row.topic,
            row.internal,
            row.partitions,
            row.replicas,
            sum(records) if records else None,
            self._sizes.get(row.topic),
            self.rate_in(map(_key, partitions)),
            None if oldest is None else max(0, self.storage.wall_ms - oldest),
            self.storage.retention.get(row.topic),
            sum(one.leader is None for one in partitions),
            sum(len(one.isr) < len(one.replicas) for one in partitions if one.leader is not None),
            readers,
            worst.health if worst else None,
            row.error,
        )

    def _of(self, group: str, topic: str) -> Sequence[PartitionLag]:
        found = self._groups.get(group)
        return [row for row in found.partitions if row.topic == topic] if found else ()

    def _partition_readers(self, topic: str) -> dict[int, list[PartitionReader]]:
        found: dict[int, list[PartitionReader]] = defaultdict(list)
        for group in self._readers.get(topic, ()):
            for row in self._of(group, topic):
                member = row.group_instance_id or row.client_id or row.consumer_id
                found[row.partition or 0].append(PartitionReader(group, member, row.current_offset, row.lag))
        return found

    def _sample(self, topic: str) -> Sample:
        groups = {
            name: replace(self._groups[name], partitions=tuple(self._of(name, topic)))
            for name in self._readers.get(topic, ())
        }
        at_s = self.snapshot.at_s if self.snapshot else 0.0
        return Sample(at_s, self.storage.wall_ms, groups)

    def _facts(self, topic: str) -> LagFacts:
        """Facts for lag_rows. The time of an unread record follows from its place between the oldest record and now."""
        storage = self.storage
        starts, times = {}, {}
        bounds = {_key(row): (row.log_start_offset, row.log_end_offset) for row in self._partitions.get(topic, ())}
        for group in self._readers.get(topic, ()):
            for row in self._of(group, topic):
                key = TopicPartition(topic, row.partition or 0)
                start, end = bounds.get(key, (None, None))
                oldest = storage.oldest.get(key)
                if start is None or end is None:
                    continue
                starts[key] = start
                first = max(row.current_offset or 0, start)
                if oldest is not None and oldest <= storage.wall_ms and start <= first < end:
                    part = (first - start) / (end - start)
                    times[(*key, first)] = round(oldest + part * (storage.wall_ms - oldest))
        retention: Mapping[str, Retention] = {topic: one} if (one := storage.retention.get(topic)) else {}
        return LagFacts(storage.wall_ms, starts, times, retention=retention, log_bytes=storage.log_bytes)


def _key(row: TopicPartitionRow) -> TopicPartition:
    return TopicPartition(row.topic, row.partition or 0)
