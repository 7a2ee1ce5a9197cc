"""Work that can wait: retention, compaction, files of deleted topics, expiry of producers, checkpoints.

The server calls it about once a second while there is work; each call does a slice of some milliseconds.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence

from broker.protocol.wire_types import DecodeError, EncodeError
from broker.storage.errors import DamageError, OutOfDescriptors
from broker.storage.flush import Flush
from broker.storage.partition_log import PartitionLog
from broker.storage.rows.row_topic import RowTopic
from broker.storage.segments.leftovers import find_orphans
from broker.storage.segments.partition import SegmentPartition
from broker.storage.segments.retention import overdue_partitions, retain
from broker.storage.segments.shared import Shared
from broker.storage.store.catalog import Topics

logger = logging.getLogger(__name__)

SLICE_SECONDS = 0.008
CHECKPOINTS_PER_CALL = 64


class Housekeeping:
    """Changes what a flush then makes durable. The only commit of its own is that of a WAL checkpoint."""

    def __init__(
        self,
        shared: Shared,
        flush: Flush,
        topics: Topics,
        row_topics: Sequence[RowTopic],
        partition: Callable[[str, int], PartitionLog | None],
        loaded: Callable[[], list[SegmentPartition]],
        started_at_ms: int,
    ) -> None:
        self._shared = shared
        self._flush = flush
        self._topics = topics
        self._row_topics = row_topics
        self._partition = partition
        self._loaded = loaded
        self._seen_flushes = 0
        self._retention_at_ms: int | None = None
        self._compaction_at_ms: int | None = started_at_ms
        self._expiry_at_ms: int | None = None
        self._orphans_found = False
        self._work: list[Iterator[None]] = []
        self._damaged: set[SegmentPartition] = set()

    def sweep(self, wall_ms: int) -> bool:
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
        if not self._orphans_found and not self._flush.dirty:
            # As long as a deletion waits for its flush, its directory is no orphan.
            known = {topic.topic_id.hex() for topic in self._topics.values()}
            find_orphans(self._shared, known)
            self._orphans_found = True
        while self._shared.pending.deleted_trees:
            # Before everything else: a compaction pass is long, and the space may be needed.
            self._work.insert(0, self._remove_tree(self._shared.pending.deleted_trees.pop()))
        self._work_a_slice()
        return bool(self._work)

    def due_in_ms(self, wall_ms: int) -> int:
        """How soon work is due again that no flush announces."""
        settings = self._shared.settings
        begun = (
            (self._retention_at_ms, settings.retention_check_interval_ms),
            (self._compaction_at_ms, settings.compaction_interval_ms),
            (self._expiry_at_ms, settings.producer_id_expiration_check_interval_ms),
        )
        return min(
            0 if _is_due(last, every, wall_ms) else last + every - wall_ms for last, every in begun if last is not None
        )

    def _work_a_slice(self) -> None:
        deadline = time.monotonic() + SLICE_SECONDS
        while self._work and time.monotonic() < deadline:
            try:
                if next(self._work[0], False) is False:
                    del self._work[0]
            except OutOfDescriptors:
                # The next sweep starts this work again.
                del self._work[0]
                self._retention_at_ms = self._compaction_at_ms = None
                raise

    def _remove_tree(self, directory: str) -> Iterator[None]:
        try:
            yield from self._shared.files.removing_tree(directory)
        except OutOfDescriptors:
            self._shared.pending.deleted_trees.append(directory)
            raise

    def tidy_store(self) -> bool:
        """Checkpoint idle partitions; checkpoint the WAL if it is large or idle. True: the log is not idle yet."""
        store, flush = self._shared.store, self._flush
        idle = flush.count == self._seen_flushes and not flush.dirty
        self._seen_flushes = flush.count
        if idle:
            for partition in [p for p in self._loaded() if p.is_beyond_checkpoint][:CHECKPOINTS_PER_CALL]:
                partition.checkpoint(complete=True)
                # The flush that this asks for is no sign of use.
                self._seen_flushes = flush.count + 1
        # A WAL checkpoint ends the store's transaction, so the transaction must not hold what waits for a flush.
        if not store.dirty and (store.wal_is_large or (idle and store.wal_pages)):
            store.checkpoint()
        return not idle

    # -- retention and compaction

    def _retain(self, wall_ms: int) -> Iterator[None]:
        """Drop segments and rows that are too old or too many."""
        yield from self._clean_rows(wall_ms, "delete")
        for overdue in overdue_partitions(self._shared, self._topics, self._loaded_ids, wall_ms):
            partition = self._partition(overdue.topic.name, overdue.partition) if overdue is not None else None
            if isinstance(partition, SegmentPartition):
                self._retain_partition(partition, wall_ms)
            yield

    def _retain_partition(self, partition: SegmentPartition, wall_ms: int) -> None:
        try:
            retain(partition, wall_ms)
        except DamageError as error:
            # The active segment is to be sealed, but its file is missing or cut.
            logger.error("retention of %s stopped: %s", partition.name, error)

    def _loaded_ids(self) -> set[int]:
        return {partition.partition_id for partition in self._loaded()}

    def _compact(self, wall_ms: int) -> Iterator[None]:
        yield from self._clean_rows(wall_ms, "compact")
        rows = {topic.name for topic in self._row_topics}
        for topic in list(self._topics.values()):
            if topic.name in rows or not self._shared.policy_of(topic).compact:
                continue
            for index in range(topic.partition_count):
                partition = self._partition(topic.name, index)
                if isinstance(partition, SegmentPartition):
                    yield from self._compact_partition(partition, wall_ms)
                yield

    def _clean_rows(self, wall_ms: int, cleanup: str) -> Iterator[None]:
        for topic in self._row_topics:
            if topic.tables.cleanup == cleanup:
                yield from topic.clean(self._shared.policy_of(self._topics[topic.name]), wall_ms)

    def _compact_partition(self, partition: SegmentPartition, wall_ms: int) -> Iterator[None]:
        # Most brokers have no partition to compact.
        from broker.storage.segments import compaction

        if partition in self._damaged or not compaction.wants_compaction(partition, wall_ms):
            return
        try:
            yield from compaction.compact(partition, self._shared, wall_ms)
        except (DamageError, DecodeError, EncodeError) as error:
            # Readers of a damaged batch get the same error; other partitions are not affected.
            self._damaged.add(partition)
            logger.error("compaction of %s stopped: %s", partition.name, error)

    # -- producers

    def _expire_producers(self, before_ms: int) -> None:
        store = self._shared.store
        for partition in self._loaded():
            partition.transactions.expire_producers(before_ms)
        expired = "FROM producers WHERE last_timestamp <= ? AND transaction_offset < 0"
        if store.query(f"SELECT 1 {expired} LIMIT 1", (before_ms,)):
            store.execute(f"DELETE {expired}", (before_ms,))


def _is_due(last_ms: int | None, interval_ms: int, wall_ms: int) -> bool:
    """True after the interval, and when the clock was set back."""
    return last_ms is None or not 0 <= wall_ms - last_ms < interval_ms
