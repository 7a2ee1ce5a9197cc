"""Partitions with segment files: what the store lists, and where their records end."""

from __future__ import annotations

import os
from collections.abc import Container, Iterator, Mapping
from pathlib import Path

from broker.light_named_tuples import NamedTuple
from broker.protocol.record_batch import BatchHeader
from broker.storage.errors import DamageError
from broker.storage.inspection.segment_reader import SegmentReader
from broker.storage.inspection.store_copy import StoreCopy
from broker.storage.segments.segment_file import segment_name
from broker.storage.segments.synced_ends import SyncedEnd
from broker.storage.segments.verification import StoredBatch
from broker.storage.store.values import as_bytes, as_int, as_text


class StoredTopic(NamedTuple):
    name: str
    topic_id: bytes
    partition_count: int
    internal: bool
    configs: dict[str, str]


class StoredSegment(NamedTuple):
    """A segment file up to the end of its records. `digest`: of its batches, if it is known."""

    path: Path
    base_offset: int
    revision: int
    end_offset: int
    size_bytes: int
    first_timestamp: int
    max_timestamp: int
    digest: int | None
    has_trailer: bool
    is_active: bool


class AbortedRange(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int


class StoredProducer(NamedTuple):
    producer_id: int
    epoch: int
    last_timestamp: int
    coordinator_epoch: int
    transaction_offset: int  # -1: no transaction is open
    batches: bytes


class StoredPartition(NamedTuple):
    """`is_beyond_checkpoint`: the active file may hold batches that the store does not list yet."""

    partition_id: int
    topic: str
    topic_id: bytes
    partition: int
    log_start_offset: int
    is_beyond_checkpoint: bool
    segments: tuple[StoredSegment, ...]

    @property
    def log_end_offset(self) -> int:
        return max(self.log_start_offset, self.segments[-1].end_offset if self.segments else 0)

    @property
    def size_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self.segments)


def stored_topics(copy: StoreCopy) -> list[StoredTopic]:
    configs: dict[bytes, dict[str, str]] = {}
    for topic_id, name, value in copy.query("SELECT topic_id, name, value FROM topic_configs ORDER BY topic_id, name"):
        configs.setdefault(as_bytes(topic_id), {})[as_text(name)] = as_text(value)
    rows = copy.query("SELECT name, topic_id, partition_count, internal FROM topics ORDER BY name")
    return [
        StoredTopic(as_text(name), as_bytes(id_), as_int(count), bool(internal), configs.get(as_bytes(id_), {}))
        for name, id_, count, internal in rows
    ]


def listed_partitions(copy: StoreCopy, data_dir: Path, topics: Mapping[bytes, StoredTopic]) -> list[StoredPartition]:
    """The partitions with rows, sorted by topic and number, as the store lists them."""
    files: dict[int, list[tuple[int | None, ...]]] = {}
    for row in copy.iterate(
        "SELECT partition_id, base_offset, revision, end_offset, size_bytes, first_timestamp, max_timestamp, digest,"
        " has_trailer FROM segments ORDER BY partition_id, base_offset"
    ):
        files.setdefault(as_int(row[0]), []).append(
            tuple(None if value is None else as_int(value) for value in row[1:])
        )
    found = []
    for row in copy.query("SELECT partition_id, topic_id, partition, log_start_offset, unrecorded FROM partitions"):
        number, topic_id, index = as_int(row[0]), as_bytes(row[1]), as_int(row[2])
        directory = data_dir / "segments" / topic_id.hex() / str(index)
        topic = topics.get(topic_id)
        listed = files.get(number, [])
        segments = tuple(
            _segment(directory, fields, is_active=at == len(listed) - 1) for at, fields in enumerate(listed)
        )
        name = topic.name if topic is not None else topic_id.hex()
        found.append(StoredPartition(number, name, topic_id, index, as_int(row[3]), bool(row[4]), segments))
    return sorted(found, key=lambda partition: (partition.topic, partition.partition))


def _segment(directory: Path, fields: tuple[int | None, ...], *, is_active: bool) -> StoredSegment:
    base, revision, end, size, first, newest, digest, trailer = fields
    path = directory / segment_name(as_int(base), as_int(revision))
    return StoredSegment(
        path, as_int(base), as_int(revision), as_int(end), as_int(size), as_int(first), as_int(newest), digest,
        bool(trailer), is_active,
    )  # fmt: skip


def with_acknowledged_end(partition: StoredPartition, end: SyncedEnd | None) -> StoredPartition:
    """The partition with the records that are acknowledged and that its checkpoint does not have yet."""
    if not partition.segments or end is None:
        return partition
    active = partition.segments[-1]
    is_same = (end.topic_id, end.partition) == (partition.topic_id, partition.partition)
    if not is_same or end.base_offset != active.base_offset or end.end_offset <= active.end_offset:
        return partition
    return _with_end(partition, end.end_offset, end.position)


def with_tail(partition: StoredPartition, in_transactions: Container[int]) -> StoredPartition:
    """The partition of a broker that died, with the batches behind the acknowledged end that its next start keeps.

    That start cuts the log at the first batch behind the checkpoint that begins or ends a transaction. `in_transactions`
    are the producers with an open transaction in this partition.
    """
    if not partition.segments or not partition.is_beyond_checkpoint:
        return partition
    active = partition.segments[-1]
    end_offset, position = active.end_offset, active.size_bytes
    for batch in tail_batches(partition):
        if _is_uncommitted(batch.header, in_transactions):
            break
        end_offset, position = batch.header.next_offset, batch.position + batch.header.size_bytes
    return _with_end(partition, end_offset, position)


def tail_batches(partition: StoredPartition) -> Iterator[StoredBatch]:
    """Whole batches behind the end of the active segment, up to the first bytes that are none."""
    active = partition.segments[-1]
    if not os.path.exists(active.path):
        return
    reader = SegmentReader(active.path)
    try:
        yield from reader.batches(active.end_offset, active.size_bytes, reader.size, until_damage=True)
    except DamageError:
        return
    finally:
        reader.close()


def _is_uncommitted(header: BatchHeader, known: Container[int]) -> bool:
    begins = header.is_transactional and header.producer_id >= 0 and header.producer_id not in known
    return header.is_control or begins


def _with_end(partition: StoredPartition, end_offset: int, position: int) -> StoredPartition:
    active = partition.segments[-1]._replace(end_offset=end_offset, size_bytes=position, digest=None)
    return partition._replace(segments=(*partition.segments[:-1], active))
