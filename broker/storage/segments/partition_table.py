"""The rows of one partition in the store: its number, its log start offset, its segments."""

from __future__ import annotations

from collections.abc import Iterable

from broker.light_named_tuples import NamedTuple
from broker.storage.files import Files
from broker.storage.segments.segment import Segment
from broker.storage.segments.segment_file import Place
from broker.storage.store.database import Store
from broker.storage.store.values import as_int


class PartitionRow(NamedTuple):
    partition_id: int
    log_start_offset: int
    beyond_checkpoint: bool
    has_open_transactions: bool


def load_partition(store: Store, topic_id: bytes, index: int) -> PartitionRow | None:
    rows = store.query(
        "SELECT partition_id, log_start_offset, unrecorded, EXISTS (SELECT 1 FROM producers AS s"
        " WHERE s.partition_id = p.partition_id AND s.transaction_offset >= 0)"
        " FROM partitions AS p WHERE topic_id = ? AND partition = ?",
        (topic_id, index),
    )
    if not rows:
        return None
    partition_id, log_start, beyond_checkpoint, has_open = map(as_int, rows[0])
    return PartitionRow(partition_id, log_start, bool(beyond_checkpoint), bool(has_open))


def add_partition(store: Store, topic_id: bytes, index: int, number: int | None = None) -> int:
    """Return the number of the new row. It is marked as beyond its checkpoint: bytes are about to be written."""
    if number is None:
        number = int(store.meta("next_partition_id") or 1)
        store.set_meta("next_partition_id", str(number + 1))
    store.execute("INSERT INTO partitions VALUES (?, ?, ?, 0, 1)", (number, topic_id, index))
    return number


def raise_partition_numbers(store: Store, first: int) -> None:
    """Give out no number below `first`."""
    if first > int(store.meta("next_partition_id") or 1):
        store.set_meta("next_partition_id", str(first))


def mark_beyond_checkpoint(store: Store, partition_id: int, beyond: bool) -> None:
    """Say whether the active segment may reach beyond its row in segments (column `unrecorded`)."""
    store.execute("UPDATE partitions SET unrecorded = ? WHERE partition_id = ?", (int(beyond), partition_id))


def set_log_start(store: Store, partition_id: int, offset: int) -> None:
    store.execute("UPDATE partitions SET log_start_offset = ? WHERE partition_id = ?", (offset, partition_id))


def delete_partitions(store: Store, topic_id: bytes) -> list[int]:
    """Delete all rows of the partitions of a topic; return their numbers."""
    numbers = [as_int(n) for (n,) in store.query("SELECT partition_id FROM partitions WHERE topic_id = ?", (topic_id,))]
    for table in ("segments", "producers", "aborted_transactions"):
        store.execute(
            f"DELETE FROM {table} WHERE partition_id IN (SELECT partition_id FROM partitions WHERE topic_id = ?)",
            (topic_id,),
        )
    store.execute("DELETE FROM partitions WHERE topic_id = ?", (topic_id,))
    return numbers


def load_segments(store: Store, partition_id: int, files: Files, place: Place, interval_bytes: int) -> list[Segment]:
    rows = store.query(
        "SELECT base_offset, revision, end_offset, size_bytes, first_timestamp, max_timestamp, max_timestamp_offset,"
        " compacted_at_ms, digest, has_trailer FROM segments WHERE partition_id = ? ORDER BY base_offset",
        (partition_id,),
    )
    segments = []
    for row in rows:
        base, revision, end, size, first, newest, newest_offset, compacted = map(as_int, row[:8])
        segments.append(
            Segment(
                files,
                place,
                base,
                interval_bytes=interval_bytes,
                revision=revision,
                end_offset=end,
                size_bytes=size,
                first_timestamp=first,
                max_timestamp=newest,
                max_timestamp_offset=newest_offset,
                compacted_at_ms=compacted,
                digest=None if row[8] is None else as_int(row[8]),
                has_trailer=bool(row[9]),
            )
        )
    return segments


def save_segments(store: Store, partition_id: int, segments: Iterable[Segment]) -> None:
    store.execute_many(
        "INSERT OR REPLACE INTO segments VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                partition_id,
                segment.base_offset,
                segment.revision,
                segment.end_offset,
                segment.size_bytes,
                segment.first_timestamp,
                segment.max_timestamp,
                segment.max_timestamp_offset,
                segment.compacted_at_ms,
                segment.digest,
                int(segment.has_trailer),
            )
            for segment in segments
        ],
    )


def delete_segment(store: Store, partition_id: int, base_offset: int) -> None:
    store.execute("DELETE FROM segments WHERE partition_id = ? AND base_offset = ?", (partition_id, base_offset))
