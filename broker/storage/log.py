"""The log of one broker: topics, partitions, the coordinator's records, and the rounds that make them durable."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from broker.storage.catalog import EVENTS_TOPIC, OFFSETS_TOPIC, Catalog, Topic, Topics
from broker.storage.errors import StorageError
from broker.storage.failure import Failure
from broker.storage.files import FileOps, Files, guarded
from broker.storage.flush import Flush
from broker.storage.housekeeping import Housekeeping
from broker.storage.partition_log import PartitionLog
from broker.storage.rows.event_rows import EventRow, EventRows
from broker.storage.rows.offsets_rows import OffsetsRow, OffsetsRowLike, OffsetsRows
from broker.storage.rows.rows_partition import RowsPartition
from broker.storage.segments.partition import SegmentPartition, Shared
from broker.storage.segments.recovery import recover_partition
from broker.storage.segments.repair import refuse, repair_partition, set_aside, short_segments
from broker.storage.settings import DAY_MS, LogSettings
from broker.storage.store.commit_marker import SyncedEnds
from broker.storage.store.database import Store
from broker.storage.store.partition_rows import delete_partitions

SWEEP_SOON_MS = 20
SWEEP_LATER_MS = 1000
# A week of events, and no more of them than some 30,000.
EVENTS_TOPIC_CONFIGS = {
    "cleanup.policy": "delete",
    "compression.type": "producer",
    "retention.ms": str(7 * DAY_MS),
    "retention.bytes": str(16 << 20),
}


class Log:
    """All calls come from one thread. `flush` makes appends and changes durable; nothing else does."""

    def __init__(
        self, data_dir: Path, settings: LogSettings, *, wall_ms: int, accept_loss: bool, file_ops: FileOps
    ) -> None:
        self.data_dir = data_dir
        directory = str(data_dir)
        files = Files(file_ops, durable=settings.durability != "process", limit=settings.max_open_segments)
        self._files = files
        files.make_directories(directory)
        self._failure = Failure()
        self._store = store = Store(files, directory, self._failure, accept_loss=accept_loss)
        try:
            if files.durable and not store.was_synced:
                # What the last run acknowledged without a sync is now owed like all the rest.
                guarded("sync", directory, file_ops.sync_everything)
            ends = SyncedEnds(files, os.path.join(directory, "synced-ends"))
            self._flush = Flush(store, files, ends, self._failure)
            self._catalog = Catalog(store)
            self.losses: list[str] = store.losses
            self.recovered: list[str] = []  # partitions that were being written to when the last run ended
            root = os.path.join(directory, "segments")
            self._shared = Shared(
                store,
                files,
                self._flush,
                self._failure,
                ends,
                settings,
                root,
                self._catalog.broker_configs,
                accept_loss=accept_loss,
            )
            self._partitions: dict[tuple[str, int], SegmentPartition] = {}
            if store.is_new:
                ends.sync()
                self._initialise(settings)
            elif not ends.exists:
                store.lose(f"{ends.path} is missing: lost records cannot be ruled out", accept_loss)
            self.cluster_id = store.meta("cluster_id") or ""
            offsets_topic = self._catalog.topics[OFFSETS_TOPIC]
            self._offsets = OffsetsRows(store, offsets_topic.partition_count)
            self._add_events_topic()
            self._events = EventRows(store)
            self._kept_as_rows: dict[str, list[RowsPartition]] = {
                OFFSETS_TOPIC: [RowsPartition(self._offsets, n) for n in range(offsets_topic.partition_count)],
                EVENTS_TOPIC: [RowsPartition(self._events, 0)],
            }
            self._housekeeping = Housekeeping(
                self._shared,
                self._catalog.topics,
                self._offsets,
                self._events,
                self.partition,
                lambda: list(self._partitions.values()),
                wall_ms,
            )
            self._recover()
            store.mark_open()
            self.flush()
            set_aside(self._shared)
            if store.is_new:
                files.sync_directory(directory)
                files.sync_parent(directory)
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
    ) -> Log:
        """Open or make the log of a data directory; `losses` says what was given up with `accept_loss`.

        DamageError: acknowledged writes are gone or damaged. NewerFormatError: of a newer version.
        """
        return cls(data_dir, settings, wall_ms=wall_ms, accept_loss=accept_loss, file_ops=file_ops or FileOps())

    def _initialise(self, settings: LogSettings) -> None:
        self._files.make_directory(self._shared.root)
        self._store.set_meta("cluster_id", _new_cluster_id())
        self._store.set_meta("next_producer_id", "0")
        self._catalog.create(
            OFFSETS_TOPIC,
            settings.offsets_topic_partitions,
            {
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(settings.offsets_topic_segment_bytes),
            },
            internal=True,
        )

    def _add_events_topic(self) -> None:
        """In a new store, and in one of a format that had none."""
        known = self._catalog.topics.get(EVENTS_TOPIC)
        if known is None:
            self._catalog.create(EVENTS_TOPIC, 1, EVENTS_TOPIC_CONFIGS, internal=True)
        elif not known.internal:
            raise StorageError(f"{self._store.path}: a client made the topic {EVENTS_TOPIC}, which is the broker's own")

    def _recover(self) -> None:
        short = short_segments(self._shared, self._catalog.topics)
        if short and self._store.binding and not self._shared.accept_loss:
            raise refuse(short)
        if self._shared.accept_loss:
            for partition in self._stored_partitions("1"):
                repair_partition(partition, self._shared)
        else:
            for topic, index in dict.fromkeys((entry.topic.name, entry.partition) for entry in short):
                cut = self.partition(topic, index)
                assert isinstance(cut, SegmentPartition)
                repair_partition(cut, self._shared)
        for partition in self._stored_partitions("unrecorded"):
            recover_partition(partition, self._shared)
            self.recovered.append(f"{partition.name} up to offset {partition.log_end_offset}")

    def _stored_partitions(self, condition: str) -> Iterator[SegmentPartition]:
        rows = self._store.query(f"SELECT topic_id, partition FROM partitions WHERE {condition} ORDER BY partition_id")
        for topic_id, index in rows:
            assert isinstance(topic_id, bytes)
            assert isinstance(index, int)
            topic = self._catalog.topics.by_id(topic_id)
            if topic is not None:
                partition = self.partition(topic.name, index)
                assert isinstance(partition, SegmentPartition)
                yield partition

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
        self, name: str, partition_count: int, configs: Mapping[str, str], *, internal: bool = False
    ) -> Topic:
        """ValueError if it exists. Names and configs are checked by the caller (see TOPIC_CONFIGS)."""
        return self._catalog.create(name, partition_count, configs, internal=internal)

    def delete_topic(self, name: str) -> None:
        """KeyError if there is none. The files go after the next commit."""
        topic = self._catalog.delete(name)
        for key in [key for key in self._partitions if key[0] == name]:
            partition = self._partitions.pop(key)
            partition.forget()
        delete_partitions(self._store, topic.topic_id)
        self._flush.unlink_tree_after(os.path.join(self._shared.root, topic.topic_id.hex()))

    def add_partitions(self, name: str, total: int) -> None:
        """ValueError if the topic has as many already."""
        self._catalog.add_partitions(name, total)

    def alter_topic_configs(self, name: str, changes: Mapping[str, str | None]) -> None:
        """None removes a config."""
        self._catalog.alter_topic_configs(name, changes)
        for (topic, _), partition in self._partitions.items():
            if topic == name:
                partition.policy_changed()

    def alter_broker_configs(self, changes: Mapping[str, str | None]) -> None:
        self._catalog.alter_broker_configs(changes)
        for partition in self._partitions.values():
            partition.policy_changed()

    def partition(self, topic: str, index: int) -> PartitionLog | None:
        """None if there is no such topic or partition."""
        found = self._partitions.get((topic, index))
        if found is not None:
            return found
        entry = self._catalog.topics.get(topic)
        if entry is None or not 0 <= index < entry.partition_count:
            return None
        if topic in self._kept_as_rows:
            return self._kept_as_rows[topic][index]
        found = self._partitions[topic, index] = SegmentPartition(self._shared, entry, index)
        return found

    def next_producer_id(self) -> int:
        number = int(self._store.meta("next_producer_id") or 0)
        self._store.set_meta("next_producer_id", str(number + 1))
        return number

    # -- the coordinator's records

    def append_offsets_rows(self, rows: Sequence[OffsetsRowLike]) -> None:
        self._failure.check()
        self._offsets.append(rows)

    def append_group_events(self, rows: Sequence[EventRow]) -> None:
        """Events are part of the transaction of the records that are appended in the same round."""
        self._failure.check()
        self._events.append(rows)

    def group_metadata_rows(self) -> Iterator[OffsetsRow]:
        """The newest row of each group that has not been deleted."""
        return self._offsets.group_metadata_rows()

    def offset_rows(self, group_id: str) -> list[OffsetsRow]:
        """The newest row of each committed offset of one group."""
        return self._offsets.offset_rows(group_id)

    def groups_with_offsets(self) -> Iterator[str]:
        return self._offsets.groups_with_offsets()

    def groups_with_offsets_of(self, topic: str) -> list[str]:
        return self._offsets.groups_with_offsets_of(topic)

    def set_generation_floor(self, group_id: str, generation: int | None) -> None:
        """None: the group is gone."""
        if generation is None:
            self._store.execute("DELETE FROM generation_floors WHERE group_id = ?", (group_id,))
        else:
            self._store.execute(
                "INSERT INTO generation_floors VALUES (?, ?) ON CONFLICT DO UPDATE SET generation = excluded.generation",
                (group_id, generation),
            )

    def generation_floors(self) -> dict[str, int]:
        floors: dict[str, int] = {}
        for group_id, generation in self._store.query("SELECT group_id, generation FROM generation_floors"):
            assert isinstance(group_id, str)
            assert isinstance(generation, int)
            floors[group_id] = generation
        return floors

    # -- flushing

    @property
    def failure(self) -> StorageError | None:
        """The first failed write or sync. Once there is one, the log refuses appends and flushes."""
        return self._failure.cause

    @property
    def dirty(self) -> bool:
        """Something waits for flush()."""
        return self._flush.dirty or self._offsets.dirty or self._events.dirty

    def flush(self) -> None:
        """Make everything that was appended or changed durable. A StorageError is final: see `failure`."""
        self._failure.check()
        if not self.dirty:
            return
        self._offsets.before_commit()
        self._events.before_commit()
        self._flush.run()
        self._offsets.after_commit()
        self._events.after_commit()

    def sweep(self, wall_ms: int) -> int | None:
        """Do a slice of housekeeping, some milliseconds; what it changes waits for the next flush.

        Call it about a second after a flush, and again after the returned number of ms, if any.
        """
        self._failure.check()
        try:
            busy = self._housekeeping.tidy_store(log_is_dirty=self.dirty)
            more = self._housekeeping.sweep(wall_ms, log_is_dirty=self.dirty)
        except StorageError as error:
            self._failure.remember(error)
            raise
        return SWEEP_SOON_MS if more else SWEEP_LATER_MS if busy or self.dirty else None

    def close(self, clean: bool = True) -> None:
        """`clean` false, or an earlier failure, leaves everything as a kill would."""
        try:
            if clean and self._failure.cause is None:
                self._close_partitions()
                self._store.close(clean=True)
        finally:
            self._store.close(clean=False)
            self._files.forget_all()

    def _close_partitions(self) -> None:
        self.flush()
        self._offsets.settle()
        for partition in self._partitions.values():
            if partition.is_behind_record:
                partition.active.cut()
                self._files.sync(partition.active.file())
                partition.record(complete=True)
        self.flush()
        self._flush.sync_ends()


def _new_cluster_id() -> str:
    """A random UUID in base64url without padding, as Kafka prints it."""
    import base64

    return base64.urlsafe_b64encode(os.urandom(16)).rstrip(b"=").decode()
