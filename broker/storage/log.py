"""The log of one broker, as the server uses it: topics, partitions, row topics, flush and housekeeping."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from broker.protocol import uuids
from broker.storage.errors import OutOfDescriptors, ReplacedError, StorageError
from broker.storage.failure import Failure
from broker.storage.file_ops import FileOps, HeldDirectory
from broker.storage.files import Files, guarded
from broker.storage.flush import Flush
from broker.storage.housekeeping import Housekeeping
from broker.storage.open_files import OpenFiles
from broker.storage.partition_log import PartitionLog
from broker.storage.rows.compacted_tables import CompactedTables
from broker.storage.rows.declarations import (
    OFFSETS_TOPIC,
    SHARE_STATE_TOPIC,
    TRANSACTIONS_TOPIC,
    RowTopicDeclaration,
    row_topics,
)
from broker.storage.rows.pending_offsets import StoredPendingOffsets
from broker.storage.rows.row_partition import RowPartition
from broker.storage.rows.row_topic import RowTopic
from broker.storage.rows.stored_groups import StoredGroups
from broker.storage.rows.stored_transactions import StoredTransactions
from broker.storage.rows.topic_row import RowLike, TopicRow
from broker.storage.segments.leftovers import note_deleted_topic, set_aside
from broker.storage.segments.partition import SegmentPartition
from broker.storage.segments.partition_table import delete_partitions
from broker.storage.segments.pending import Pending
from broker.storage.segments.producers import open_transactions
from broker.storage.segments.recovery import Recovery
from broker.storage.segments.shared import Shared
from broker.storage.segments.synced_ends import SyncedEnds
from broker.storage.segments.topic_files import TopicFiles
from broker.storage.settings import LogSettings
from broker.storage.store.catalog import Catalog, Topic, Topics
from broker.storage.store.database import Store
from broker.storage.store.feature_levels import FeatureLevels
from broker.storage.store.security_records import SecurityRecords

SWEEP_SOON_MS = 20
SWEEP_LATER_MS = 1000


class Log:
    """All calls come from one thread. `flush` makes appends and changes durable; nothing else does."""

    def __init__(
        self, data_dir: Path, settings: LogSettings, *, wall_ms: int, accept_loss: bool, file_ops: FileOps
    ) -> None:
        self.data_dir = data_dir
        directory = str(data_dir)
        self._files = files = Files(
            file_ops, durable=settings.durability != "process", limit=settings.max_open_segments
        )
        files.make_directories(directory)
        self._failure = Failure()
        self._store = store = Store(files, directory, self._failure, accept_loss=accept_loss)
        try:
            if files.durable and not store.evidence.was_synced:
                # The last run acknowledged without a sync; this run promises that nothing acknowledged is lost.
                guarded("sync", directory, file_ops.sync_everything)
            self._open(directory, settings, wall_ms, accept_loss)
        except StorageError:
            store.close(clean=False)
            raise

    @classmethod
    def open(
        cls,
        data_dir: Path,
        settings: LogSettings,
        *,
        wall_ms: int,
        accept_loss: bool = False,
        file_ops: FileOps | None = None,
        held: HeldDirectory | None = None,
    ) -> Log:
        """Open or create the log of a data directory. With `accept_loss`, `losses` names what had to be given up.

        `held` is the locked data directory; once it is replaced, every change and flush raises ReplacedError.
        DamageError: acknowledged writes are lost or damaged. NewerFormatError: a newer version wrote the directory.
        """
        file_ops = file_ops or FileOps()
        file_ops.directory = held
        return cls(data_dir, settings, wall_ms=wall_ms, accept_loss=accept_loss, file_ops=file_ops)

    # -- opening

    def _open(self, directory: str, settings: LogSettings, wall_ms: int, accept_loss: bool) -> None:
        store, files = self._store, self._files
        self._catalog = catalog = Catalog(store)
        self.security_records = SecurityRecords(store)
        self.losses: list[str] = store.evidence.losses
        ends = SyncedEnds(files, directory)
        root = os.path.join(directory, "segments")
        self._topic_files = topic_files = TopicFiles(files, store, root)
        pending = Pending(files, topic_files)
        self._shared = Shared(
            store,
            files,
            pending,
            ends,
            self._failure,
            settings,
            root,
            catalog.broker_configs,
            accept_loss=accept_loss,
        )
        self._partitions: dict[tuple[str, int], SegmentPartition] = {}
        if store.is_new:
            self._initialise()
        self._row_topics: dict[str, RowTopic] = {}
        self._row_partitions: dict[str, list[RowPartition]] = {}
        # Declared topics that the store gets at their first use.
        self._later_topics: dict[str, RowTopicDeclaration] = {}
        self._open_row_topics(settings)
        self.groups = StoredGroups(store, self._row_topics[OFFSETS_TOPIC])
        self.transactions = StoredTransactions(self._row_topics[TRANSACTIONS_TOPIC])
        self.pending_offsets = StoredPendingOffsets(store)
        self._features = FeatureLevels(store)
        self._opened_rows = rows = list(self._row_topics.values())
        self._flush = Flush(store, files, rows, pending, ends, self._failure)
        self._housekeeping = Housekeeping(
            self._shared,
            self._flush,
            catalog.topics,
            rows,
            self.partition,
            lambda: list(self._partitions.values()),
            wall_ms,
        )
        # Partitions that were being written to when the last run ended.
        recovery = Recovery(self._shared, catalog, self._segment_partition, self._flush.run)
        self.recovered: list[str] = recovery.run()
        self.cluster_id = store.meta("cluster_id") or ""
        topic_files.note_outdated(catalog.topics.values())
        store.mark_open()
        self.flush()
        recovery.end()
        set_aside(self._shared)
        if store.is_new:
            files.sync_directory(directory)
            files.sync_parent(directory)
        self._open_files = OpenFiles(directory)

    def _initialise(self) -> None:
        self._files.make_directory(self._shared.root)
        self._store.set_meta("cluster_id", uuids.spelled(uuids.chosen(os.urandom)))
        self._store.set_meta("next_producer_id", "0")

    def _open_row_topics(self, settings: LogSettings) -> None:
        """Open the declared row topics; create those that a new store, or one of an older format, does not have."""
        for declared in row_topics(settings):
            if declared.at_first_use and declared.name not in self._catalog.topics:
                self._later_topics[declared.name] = declared
            else:
                self._open_row_topic(declared)

    def _open_row_topic(self, declared: RowTopicDeclaration) -> RowTopic:
        store, catalog = self._store, self._catalog
        topic = catalog.topics.get(declared.name)
        if topic is None:
            topic = catalog.create(declared.name, declared.partition_count, declared.configs, internal=True)
        elif not topic.internal:
            raise StorageError(
                f"{store.path}: a client created the topic {declared.name}, whose name is reserved for the broker"
            )
        opened = RowTopic(declared.name, declared.tables(store, topic.partition_count), store)
        self._row_topics[declared.name] = opened
        self._row_partitions[declared.name] = [RowPartition(opened, index) for index in range(opened.partition_count)]
        return opened

    # -- topics

    @property
    def topics(self) -> Topics:
        return self._catalog.topics

    @property
    def broker_configs(self) -> Mapping[str, str]:
        """Dynamic broker configs that were set."""
        return self._catalog.broker_configs

    def topic_by_id(self, topic_id: bytes) -> Topic | None:
        return self._catalog.topics.by_id(topic_id)

    def create_topic(
        self,
        name: str,
        partition_count: int,
        configs: Mapping[str, str],
        *,
        internal: bool = False,
        topic_id: bytes | None = None,
    ) -> Topic:
        """ValueError if it exists. The caller checks names and configs (see TOPIC_CONFIGS). The id is random by default."""
        return self._catalog.create(name, partition_count, configs, internal=internal, topic_id=topic_id)

    def delete_topic(self, name: str) -> None:
        """KeyError if it does not exist. The files are removed after the next flush."""
        topic = self._catalog.delete(name)
        for key in [key for key in self._partitions if key[0] == name]:
            partition = self._partitions.pop(key)
            partition.forget()
        self._shared.pending.dropped_partitions += delete_partitions(self._store, topic.topic_id)
        self._topic_files.forget(topic)
        note_deleted_topic(self._store, topic.topic_id)
        self._shared.pending.unlink_tree_after(os.path.join(self._shared.root, topic.topic_id.hex()))

    def add_partitions(self, name: str, total: int) -> None:
        """ValueError unless `total` is more than the topic has."""
        self._topic_files.note(self._catalog.add_partitions(name, total))

    def alter_topic_configs(self, name: str, changes: Mapping[str, str | None]) -> None:
        """None removes a config."""
        self._topic_files.note(self._catalog.alter_topic_configs(name, changes))
        for (topic, _), partition in self._partitions.items():
            if topic == name:
                partition.policy_changed()

    def alter_broker_configs(self, changes: Mapping[str, str | None]) -> None:
        """None removes a config."""
        self._catalog.alter_broker_configs(changes)
        for partition in self._partitions.values():
            partition.policy_changed()

    @property
    def feature_levels(self) -> Mapping[str, int]:
        """Finalized levels that were set; the others have their defaults."""
        return self._features.levels

    @property
    def feature_epoch(self) -> int:
        """How often levels were set."""
        return self._features.epoch

    def set_feature_level(self, name: str, level: int | None) -> None:
        """None removes the level: the default applies."""
        self._features.set(name, level)

    def next_producer_id(self) -> int:
        number = int(self._store.meta("next_producer_id") or 0)
        self._store.set_meta("next_producer_id", str(number + 1))
        return number

    def adopt(self, cluster_id: str | None, next_producer_id: int) -> None:
        """Continue a lost store: keep the id of its cluster, if it is known, and give out no producer id again."""
        if cluster_id is not None:
            self._store.set_meta("cluster_id", cluster_id)
            self.cluster_id = cluster_id
        self._store.set_meta("next_producer_id", str(next_producer_id))

    # -- partitions and rows

    def partition(self, topic: str, index: int) -> PartitionLog | None:
        """None if there is no such topic or partition."""
        found = self._partitions.get((topic, index))
        if found is not None:
            return found
        entry = self._catalog.topics.get(topic)
        if entry is None or not 0 <= index < entry.partition_count:
            return None
        if topic in self._row_partitions:
            return self._row_partitions[topic][index]
        return self._segment_partition(entry, index)

    def _segment_partition(self, topic: Topic, index: int) -> SegmentPartition:
        found = self._partitions.get((topic.name, index))
        if found is None:
            found = self._partitions[topic.name, index] = SegmentPartition(self._shared, topic, index)
        return found

    def open_transactions(self) -> Iterator[tuple[str, int, int, int]]:
        """(topic, partition, producer id, producer epoch) of the transactions that are open as of the last flush."""
        for topic_id, index, producer_id, producer_epoch in open_transactions(self._store):
            topic = self._catalog.topics.by_id(topic_id)
            if topic is not None:
                yield topic.name, index, producer_id, producer_epoch

    def is_reserved(self, name: str) -> bool:
        """Whether the broker will create the topic itself."""
        return name in self._later_topics

    def share_state_rows(self) -> Iterator[TopicRow]:
        """All rows of `__share_group_state` that are needed, in commit order. The topic is created if there is none yet."""
        declared = self._later_topics.pop(SHARE_STATE_TOPIC, None)
        if declared is not None:
            self._opened_rows.append(self._open_row_topic(declared))
        topic = self._row_topics[SHARE_STATE_TOPIC]
        topic.settle()
        assert isinstance(topic.tables, CompactedTables)
        return topic.tables.all_rows()

    def append_rows(self, topic: str, rows: Sequence[RowLike]) -> None:
        """Append records to a topic kept as rows, in the transaction of the next flush."""
        self._failure.check()
        self._row_topics[topic].append(rows)

    # -- flushing

    @property
    def failure(self) -> StorageError | None:
        """The first failed write or sync. Once there is one, the log refuses appends and flushes."""
        return self._failure.cause

    @property
    def dirty(self) -> bool:
        """Something waits for flush()."""
        return self._flush.dirty

    def flush(self) -> None:
        """Make everything that was appended or changed durable. A StorageError is final: see `failure`."""
        self._flush.run()

    def check_directory(self) -> None:
        """Raise ReplacedError, finally, if the data directory, or a file in it that is in use, was removed or replaced."""
        self._failure.check()
        try:
            self._files.ops.check_directory()
            path = self._open_files.replaced()
            if path is not None:
                raise ReplacedError(f"{path} was removed or replaced while the broker ran")
        except StorageError as error:
            self._failure.remember(error)
            raise

    def sweep(self, wall_ms: int) -> int | None:
        """Do a slice of housekeeping, some milliseconds; what it changes waits for the next flush.

        Call it about a second after a flush, and again after the returned number of ms, if any.
        """
        self.check_directory()
        try:
            busy = self._housekeeping.tidy_store()
            more = self._housekeeping.sweep(wall_ms)
        except OutOfDescriptors:
            return SWEEP_LATER_MS
        except StorageError as error:
            self._failure.remember(error)
            raise
        # A large WAL that found the store's transaction in use is tried again after the next flush.
        if more or self._store.wal_is_large:
            return SWEEP_SOON_MS
        return SWEEP_LATER_MS if busy or self.dirty else None

    def next_sweep_ms(self, wall_ms: int) -> int:
        """How long an idle log, which asks for no further sweep, may stay without one."""
        return max(SWEEP_SOON_MS, self._housekeeping.due_in_ms(wall_ms))

    # -- closing

    def close(self, clean: bool = True) -> None:
        """Without `clean`, or after a failure, the directory stays as kill -9 would leave it."""
        try:
            if clean and self._failure.cause is None:
                self._close_partitions()
                self._store.close(clean=True)
        finally:
            self._store.close(clean=False)
            self._files.forget_all()

    def _close_partitions(self) -> None:
        self.flush()
        for topic in self._row_topics.values():
            topic.settle()
        for partition in self._partitions.values():
            if partition.is_beyond_checkpoint:
                with suppress(OutOfDescriptors):  # the next start reads what the store does not list
                    partition.active.cut()
                    self._files.sync(partition.active.file())
                    partition.checkpoint(complete=True)
        self.flush()
        self._flush.sync_ends()
