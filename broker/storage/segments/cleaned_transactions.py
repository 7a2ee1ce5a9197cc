"""Transactions under compaction: which batches are of aborted ones, and which markers are still needed.

The rules are those of Kafka's LogCleaner. Records of aborted transactions go. A marker stays as long as the pass finds a batch of
its transaction, and delete.retention.ms longer. So does the last batch of an active producer, without records: it says which
sequence follows.
"""

from __future__ import annotations

from bisect import bisect_right

from broker.protocol.control_records import read_marker
from broker.protocol.record_batch import BatchHeader, build_batch, decode_records
from broker.storage.segments.batch_fields import set_max_timestamp
from broker.storage.segments.partition import SegmentPartition
from broker.storage.segments.segment import Segment
from broker.storage.segments.verification import StoredBatch


class CleanedTransactions:
    """One walk over segments in the order of offsets, from the first segment of the partition on if it removes markers."""

    def __init__(self, partition: SegmentPartition, wall_ms: int) -> None:
        self._partition = partition
        self._wall_ms = wall_ms
        self._aborted: dict[int, list[tuple[int, int]]] = {}  # by producer id: first and last offset
        self._seen: set[int] = set()  # producers with a batch of a transaction whose marker follows

    def enter(self, segment: Segment) -> None:
        self._aborted.clear()
        transactions = self._partition.transactions
        for found in transactions.aborted.overlapping(
            transactions.partition_id, segment.base_offset, segment.end_offset
        ):
            self._aborted.setdefault(found.producer_id, []).append((found.first_offset, found.last_offset))

    def is_aborted(self, header: BatchHeader) -> bool:
        if not header.is_transactional or header.producer_id not in self._aborted:
            return False
        ranges = self._aborted[header.producer_id]
        at = bisect_right(ranges, (header.base_offset, 1 << 63)) - 1
        return at >= 0 and header.base_offset <= ranges[at][1]

    def pass_records(self, header: BatchHeader) -> bool:
        """Note a batch of records; True if its transaction was aborted."""
        if header.is_transactional:
            self._seen.add(header.producer_id)
        return self.is_aborted(header)

    def cleaned_marker(self, batch: StoredBatch) -> bytes | None:
        """What stays of a marker: as it is, with the time until which it stays, or None."""
        header = batch.header
        if header.producer_id in self._seen:
            self._seen.discard(header.producer_id)
            return batch.content
        marker = read_marker(batch.content)
        if marker is not None and not marker.is_commit:
            transactions = self._partition.transactions
            transactions.aborted.forget(transactions.partition_id, header.last_offset)
        last = self._partition.producers.last_written(header.producer_id)
        if last is not None and last.offset < 0 and last.epoch == header.producer_epoch:
            return batch.content
        horizon = header.delete_horizon_ms
        if horizon is not None:
            return batch.content if horizon > self._wall_ms else None
        return _with_horizon(batch, self._wall_ms + self._partition.policy.delete_retention_ms)

    def emptied(self, header: BatchHeader) -> bytes | None:
        """The batch without records if it is the last one of an active producer."""
        last = self._partition.producers.last_written(header.producer_id) if header.producer_id >= 0 else None
        has_known_sequence = header.is_transactional or header.record_count in (0, header.last_offset_delta + 1)
        if last is None or last.offset != header.last_offset or not has_known_sequence:
            return None
        batch = bytearray(
            build_batch(
                [],
                base_offset=header.base_offset,
                last_offset=header.last_offset,
                leader_epoch=header.partition_leader_epoch,
                producer_id=header.producer_id,
                producer_epoch=header.producer_epoch,
                base_sequence=header.base_sequence,
                is_transactional=header.is_transactional,
            )
        )
        set_max_timestamp(batch, header.max_timestamp)
        return bytes(batch)


def _with_horizon(batch: StoredBatch, horizon_ms: int) -> bytes:
    header = batch.header
    return build_batch(
        decode_records(batch.content),
        base_offset=header.base_offset,
        last_offset=header.last_offset,
        leader_epoch=header.partition_leader_epoch,
        delete_horizon_ms=horizon_ms,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        is_transactional=True,
        is_control=True,
    )
