"""A data directory at one moment: topics, partitions with their ends, state rows, records."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path

from broker.light_named_tuples import NamedTuple
from broker.protocol.record_batch import BatchHeader, Record, decode_records
from broker.protocol.wire_types import DecodeError
from broker.storage.errors import DamageError
from broker.storage.inspection.partitions import (
    AbortedRange,
    StoredPartition,
    StoredProducer,
    StoredSegment,
    StoredTopic,
    listed_partitions,
    stored_topics,
    with_acknowledged_end,
    with_tail,
)
from broker.storage.inspection.read_only import read_only_files
from broker.storage.inspection.segment_reader import SegmentReader
from broker.storage.inspection.store_copy import Report, StoreCopy
from broker.storage.inspection.stored_rows import (
    EVENTS,
    OFFSETS,
    SHARE_STATE,
    TRANSACTIONS,
    bounds,
    newest_rows,
    rows_by_offset,
)
from broker.storage.rows.pending_offsets import StoredPendingOffset
from broker.storage.rows.topic_row import StoredRow, TopicRow
from broker.storage.segments.old_synced_ends import read_old_ends
from broker.storage.segments.synced_ends import Head, SyncedEnd, SyncedEnds
from broker.storage.store.commit_marker import CommitMarker, CommitMarkerFile, boot_id
from broker.storage.store.values import as_bytes, as_int, as_text

ROW_TOPICS = (OFFSETS, TRANSACTIONS, EVENTS, SHARE_STATE)
OPEN, ABORTED, COMMITTED = "open", "aborted", "committed"


class Ends(NamedTuple):
    """The file synced-ends. `damaged`: partition ids with a damaged slot."""

    head: Head | None
    ends: dict[int, SyncedEnd]
    damaged: frozenset[int]
    content: bytes


class BatchOfRecords(NamedTuple):
    """`transaction`: OPEN, ABORTED or COMMITTED; None outside of transactions."""

    header: BatchHeader
    records: list[Record]
    transaction: str | None


class DataDirectory:
    """Close it after use. `is_in_use`: a broker runs, or starts, on the directory.

    StorageError: it cannot be read. What is read later may be damaged: DamageError.
    """

    def __init__(self, data_dir: Path, *, is_in_use: bool, report: Report = lambda _: None) -> None:
        self.path = data_dir
        self.is_in_use = is_in_use
        # Before the store: whatever they name, it must have.
        self.marker = read_marker(data_dir)
        self.ends_before = read_ends(data_dir)
        self.copy = StoreCopy(data_dir, report)
        self.ends_after = read_ends(data_dir)
        self._aborted: dict[int, list[AbortedRange]] | None = None

    def close(self) -> None:
        self.copy.close()

    def __enter__(self) -> DataDirectory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- facts

    @cached_property
    def topics(self) -> list[StoredTopic]:
        return stored_topics(self.copy)

    @property
    def format_version(self) -> int:
        return self.copy.format_version

    @property
    def cluster_id(self) -> str | None:
        return self.copy.meta("cluster_id")

    @property
    def last_commit(self) -> int:
        return as_int(self.copy.query("SELECT ifnull(max(seq), 0) FROM commits")[0][0])

    @property
    def lost_commits(self) -> tuple[int, int] | None:
        """First and last acknowledged commit that the store does not have; None if the evidence shows no loss."""
        marker, last = self.marker, self.last_commit
        if marker is None or marker.commit_seq <= last or not (marker.synced or marker.boot_id == boot_id() != b""):
            return None
        return last + 1, marker.commit_seq

    def broker_configs(self) -> dict[str, str]:
        rows = self.copy.query("SELECT name, value FROM broker_configs ORDER BY name")
        return {as_text(name): as_text(value) for name, value in rows}

    def security_records(self, kind: str) -> dict[str, str]:
        rows = self.copy.query("SELECT name, value FROM security_records WHERE kind = ? ORDER BY name", (kind,))
        return {as_text(name): as_text(value) for name, value in rows}

    # -- partitions

    def listed_partitions(self) -> list[StoredPartition]:
        """Partitions with segment files, as the store lists them."""
        return listed_partitions(self.copy, self.path, {topic.topic_id: topic for topic in self.topics})

    def partitions(self) -> list[StoredPartition]:
        """Partitions with segment files, up to their acknowledged ends, or to what the next start of a dead broker keeps."""
        listed = self.listed_partitions()
        before, after = self.known_ends(self.ends_before, listed), self.known_ends(self.ends_after, listed)
        producers = self._in_transactions()
        found = []
        for one in listed:
            one = with_acknowledged_end(one, before.get(one.partition_id))
            one = with_acknowledged_end(one, after.get(one.partition_id))
            found.append(one if self.is_in_use else with_tail(one, producers.get(one.partition_id, ())))
        return found

    def known_ends(self, ends: Ends, listed: list[StoredPartition]) -> dict[int, SyncedEnd]:
        """The ends by partition id. Slots before format 5 do not say whose they are."""
        if ends.head is not None or self.format_version >= 5:
            return ends.ends
        return read_old_ends(ends.content, {one.partition_id: one for one in listed})

    def _in_transactions(self) -> dict[int, set[int]]:
        found: dict[int, set[int]] = {}
        for number, producer in self.copy.query(
            "SELECT partition_id, producer_id FROM producers WHERE transaction_offset >= 0"
        ):
            found.setdefault(as_int(number), set()).add(as_int(producer))
        return found

    def producers(self, partition: StoredPartition) -> list[StoredProducer]:
        rows = self.copy.query(
            "SELECT producer_id, epoch, last_timestamp, coordinator_epoch, transaction_offset, batches FROM producers"
            " WHERE partition_id = ? ORDER BY producer_id",
            (partition.partition_id,),
        )
        return [
            StoredProducer(as_int(a), as_int(b), as_int(c), as_int(d), as_int(e), as_bytes(f))
            for a, b, c, d, e, f in rows
        ]

    def aborted(self, partition: StoredPartition) -> list[AbortedRange]:
        """The aborted transactions of a partition."""
        if self._aborted is None:
            self._aborted = {}
            for number, *fields in self.copy.query(
                "SELECT partition_id, producer_id, first_offset, last_offset FROM aborted_transactions ORDER BY last_offset"
            ):
                self._aborted.setdefault(as_int(number), []).append(AbortedRange(*map(as_int, fields)))
        return self._aborted.get(partition.partition_id, [])

    # -- state

    def newest_rows(self, topic: str) -> Iterator[TopicRow]:
        """The newest row of each key of __consumer_offsets or __transaction_state."""
        return newest_rows(self.copy, topic)

    def rows_by_offset(self, topic: str) -> Iterator[tuple[int, StoredRow]]:
        return rows_by_offset(self.copy, topic)

    def row_bounds(self, topic: str) -> dict[int, tuple[int, int, int, int, int]]:
        return bounds(self.copy, topic)

    def pending_offsets(self) -> list[StoredPendingOffset]:
        rows = self.copy.query(
            'SELECT producer_id, producer_epoch, group_id, topic, partition, "offset", leader_epoch, metadata,'
            " commit_timestamp_ms, superseded FROM pending_offsets ORDER BY position"
        )
        return [
            StoredPendingOffset(
                as_int(row[0]), as_int(row[1]), as_text(row[2]), as_text(row[3]), as_int(row[4]), as_int(row[5]),
                as_int(row[6]), as_text(row[7]), as_int(row[8]), bool(row[9]),
            )
            for row in rows
        ]  # fmt: skip

    def generation_floors(self) -> dict[str, int]:
        rows = self.copy.query("SELECT group_id, generation FROM generation_floors")
        return {as_text(group): as_int(generation) for group, generation in rows}

    # -- records

    def records(self, partition: StoredPartition) -> Iterator[BatchOfRecords]:
        """The records of a partition from its log start on, without control records. DamageError at the first bad batch."""
        state = self._transaction_state(partition)
        for segment in partition.segments:
            for header, content in _batches(segment):
                if header.next_offset <= partition.log_start_offset or header.is_control:
                    continue
                try:
                    records = decode_records(content)
                except DecodeError as error:
                    raise DamageError(f"{segment.path}: the batch at offset {header.base_offset}: {error}") from error
                kept = [record for record in records if record.offset >= partition.log_start_offset]
                yield BatchOfRecords(header, kept, state(header))

    def _transaction_state(self, partition: StoredPartition) -> Callable[[BatchHeader], str | None]:
        aborted = self.aborted(partition)
        begun = {
            one.producer_id: one.transaction_offset for one in self.producers(partition) if one.transaction_offset >= 0
        }

        def state(header: BatchHeader) -> str | None:
            if not header.is_transactional or header.producer_id < 0:
                return None
            if header.base_offset >= begun.get(header.producer_id, header.next_offset):
                return OPEN
            for one in aborted:
                if one.producer_id == header.producer_id and one.first_offset <= header.base_offset <= one.last_offset:
                    return ABORTED
            return COMMITTED

        return state


def _batches(segment: StoredSegment) -> Iterator[tuple[BatchHeader, bytes]]:
    if segment.size_bytes == 0:
        return
    reader = SegmentReader(segment.path)
    try:
        for batch in reader.batches(segment.base_offset, 0, segment.size_bytes):
            yield batch.header, batch.content
    finally:
        reader.close()


def read_marker(data_dir: Path) -> CommitMarker | None:
    return CommitMarkerFile(read_only_files(), str(data_dir)).read()


def read_ends(data_dir: Path) -> Ends:
    file = SyncedEnds(read_only_files(), str(data_dir))
    head = file.load()
    return Ends(head, dict(file.at_start), frozenset(file.damaged), file.content())
