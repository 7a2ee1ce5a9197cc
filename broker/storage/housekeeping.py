"""What can wait: retention, compaction, files of deleted topics, expiry of producers, idle partitions, checkpoints.

Called about once a second while there is work; each call does a slice of some milliseconds.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator

from broker.protocol.wire_types import DecodeError, EncodeError
from broker.storage.catalog import EVENTS_TOPIC, OFFSETS_TOPIC, Topics
from broker.storage.errors import DamageError
from broker.storage.files import guarded
from broker.storage.flush import DELETED_SUFFIX
from broker.storage.partition_log import PartitionLog
from broker.storage.rows import offsets_compaction
from broker.storage.rows.event_rows import EventRows
from broker.storage.rows.offsets_rows import OffsetsRows
from broker.storage.segments import compaction
from broker.storage.segments.partition import SegmentPartition, Shared
from broker.storage.segments.repair import DAMAGED_SUFFIX

logger = logging.getLogger(__name__)

SLICE_SECONDS = 0.008
RECORDED_AT_ONCE = 64
PARTITIONS_AT_ONCE = 200


class Housekeeping:
    def __init__(
        self,
        shared: Shared,
        topics: Topics,
        offsets: OffsetsRows,
        events: EventRows,
        partition: Callable[[str, int], PartitionLog | None],
        loaded: Callable[[], list[SegmentPartition]],
        started_at_ms: int,
    ) -> None:
        self._shared = shared
        self._topics = topics
        self._offsets = offsets
        self._events = events
        self._partition = partition
        self._loaded = loaded
        self._seen_flushes = 0
        self._retention_at_ms: int | None = None
        self._compaction_at_ms: int | None = started_at_ms
        self._expiry_at_ms: int | None = None
        self._orphans_found = False
        self._work: list[Iterator[None]] = []
        self._damaged: set[SegmentPartition] = set()

    def sweep(self, wall_ms: int, *, log_is_dirty: bool) -> bool:
        """Do one slice. True: there is more to do soon."""
        settings = self._shared.settings
        if not self._work:
            if _is_due(self._retention_at_ms, settings.retention_check_interval_ms, wall_ms):
                self._retention_at_ms = wall_ms
                self._work.append(self._retain(wall_ms))
            if _is_due(self._compaction_at_ms, settings.compaction_interval_ms, wall_ms):
                self._compaction_at_ms = wall_ms
                self._work.append(self._compact(wall_ms))
        if _is_due(self._expiry_at_ms, settings.producer_id_expiration_check_interval_ms, wall_ms):
            self._expiry_at_ms = wall_ms
            self._expire_producers(wall_ms - settings.producer_id_expiration_ms)
        if not self._orphans_found and not log_is_dirty:
            # While a deletion waits for its flush, its directory is no orphan.
            self._orphans_found = True
            self._find_orphans()
        while self._shared.flush.deleted_trees:
            # Before all else: a pass of compaction is long, and the space may be needed.
            self._work.insert(0, self._shared.files.removing_tree(self._shared.flush.deleted_trees.pop()))
        self._work_a_slice()
        return bool(self._work)

    def _work_a_slice(self) -> None:
        deadline = time.monotonic() + SLICE_SECONDS
        while self._work and time.monotonic() < deadline:
            if next(self._work[0], False) is False:
                del self._work[0]

    def tidy_store(self, *, log_is_dirty: bool) -> bool:
        """List the ends of idle partitions in the store; move a large or an idle WAL into the database. True: not idle yet."""
        store, flush = self._shared.store, self._shared.flush
        idle = flush.count == self._seen_flushes and not log_is_dirty
        self._seen_flushes = flush.count
        if idle:
            for partition in [p for p in self._loaded() if p.is_behind_record][:RECORDED_AT_ONCE]:
                partition.record(complete=True)
                # The flush that this asks for is not a sign of use.
                self._seen_flushes = flush.count + 1
        # A checkpoint ends the store's transaction, so it must not hold anything that waits for a flush.
        if not store.dirty and (store.wal_is_large or (idle and store.wal_pages)):
            store.checkpoint()
        return not idle

    # -- retention

    def _retain(self, wall_ms: int) -> Iterator[None]:
        """Drop segments and rows that are too old or too many, of topics that are not kept for ever."""
        yield from self._retain_events(wall_ms)
        after = 0
        while True:
            rows = self._shared.store.query(
                "SELECT p.partition_id, p.topic_id, p.partition, min(s.max_timestamp), sum(s.size_bytes)"
                " FROM partitions AS p JOIN segments AS s ON s.partition_id = p.partition_id WHERE p.partition_id > ?"
                " GROUP BY p.partition_id ORDER BY p.partition_id LIMIT ?",
                (after, PARTITIONS_AT_ONCE),
            )
            if not rows:
                return
            loaded = {partition.partition_id for partition in self._loaded()}
            for partition_id, topic_id, index, oldest_ms, size_bytes in rows:
                assert isinstance(partition_id, int)
                assert isinstance(topic_id, bytes)
                assert isinstance(index, int)
                assert isinstance(oldest_ms, int)
                assert isinstance(size_bytes, int)
                after = partition_id
                topic = self._topics.by_id(topic_id)
                if topic is None:
                    continue
                policy = self._shared.policy_of(topic)
                too_old = policy.retention_ms >= 0 and oldest_ms < wall_ms - policy.retention_ms
                too_many = 0 <= policy.retention_bytes < size_bytes
                if policy.delete and (too_old or too_many or partition_id in loaded):
                    partition = self._partition(topic.name, index)
                    if isinstance(partition, SegmentPartition):
                        retain(partition, wall_ms)
                yield

    def _retain_events(self, wall_ms: int) -> Iterator[None]:
        policy = self._shared.policy_of(self._topics[EVENTS_TOPIC])
        if policy.delete:
            yield from self._events.retain(
                wall_ms - policy.retention_ms if policy.retention_ms >= 0 else None,
                policy.retention_bytes if policy.retention_bytes >= 0 else None,
            )

    # -- compaction

    def _compact(self, wall_ms: int) -> Iterator[None]:
        store = self._shared.store
        if offsets_compaction.wants_compaction(self._offsets, store):
            policy = self._shared.policy_of(self._topics[OFFSETS_TOPIC])
            yield from offsets_compaction.compact(self._offsets, store, wall_ms - policy.delete_retention_ms)
        for topic in list(self._topics.values()):
            if topic.name == OFFSETS_TOPIC or not self._shared.policy_of(topic).compact:
                continue
            for index in range(topic.partition_count):
                partition = self._partition(topic.name, index)
                if isinstance(partition, SegmentPartition):
                    yield from self._compact_partition(partition, wall_ms)
                yield

    def _compact_partition(self, partition: SegmentPartition, wall_ms: int) -> Iterator[None]:
        if partition in self._damaged or not compaction.wants_compaction(partition, wall_ms):
            return
        try:
            yield from compaction.compact(partition, self._shared, wall_ms)
        except (DamageError, DecodeError, EncodeError) as error:
            # Readers of a damaged batch get the same error; the rest of the partition goes on.
            self._damaged.add(partition)
            logger.error("%s is not compacted any more: %s", partition.name, error)

    # -- the rest

    def _expire_producers(self, before_ms: int) -> None:
        store = self._shared.store
        for partition in self._loaded():
            partition.expire_producers(before_ms)
        if store.query("SELECT 1 FROM producers WHERE last_timestamp <= ? LIMIT 1", (before_ms,)):
            store.execute("DELETE FROM producers WHERE last_timestamp <= ?", (before_ms,))

    def _find_orphans(self) -> None:
        """Directories of topics whose deletion was cut short by the end of the last run."""
        known = {topic.topic_id.hex() for topic in self._topics.values()}
        for name in os.listdir(self._shared.root):
            path = os.path.join(self._shared.root, name)
            if name in known or name.endswith(DAMAGED_SUFFIX):
                continue
            if self._shared.accept_loss and not name.endswith(DELETED_SUFFIX):
                # The store may have lost a topic that has records.
                guarded("rename", path, self._shared.files.ops.rename, path, path + DAMAGED_SUFFIX)
            else:
                self._shared.flush.deleted_trees.append(path)


def retain(partition: SegmentPartition, wall_ms: int) -> None:
    """Drop the oldest segments while they are past retention.ms or the rest alone fills retention.bytes."""
    policy = partition.policy
    surplus = partition.size_bytes - policy.retention_bytes if policy.retention_bytes >= 0 else -1
    count = 0
    for segment in partition.segments:
        if not segment.size_bytes or segment.end_offset > partition.high_watermark:
            break
        too_old = policy.retention_ms >= 0 and 0 <= segment.max_timestamp < wall_ms - policy.retention_ms
        too_many = surplus >= segment.size_bytes
        before_start = segment.end_offset <= partition.log_start_offset
        if not (too_old or too_many or before_start):
            break
        surplus -= segment.size_bytes
        count += 1
    if count:
        if count == len(partition.segments):
            partition.roll()
        partition.drop_segments(count, partition.segments[count].base_offset)


def _is_due(last_ms: int | None, interval_ms: int, wall_ms: int) -> bool:
    """Also when the clock was set back."""
    return last_ms is None or not 0 <= wall_ms - last_ms < interval_ms
