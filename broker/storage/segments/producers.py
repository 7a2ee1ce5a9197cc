"""Idempotence: the last batches of each producer in one partition, and which batch may follow.

The rules are Kafka's: a batch equal to one of the producer's last five is a duplicate; any other must continue the
sequence, or start at 0 with a newer epoch. An unknown producer may start anywhere.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from broker.protocol.errors import ErrorCode
from broker.protocol.record_batch import BatchHeader
from broker.storage.store.database import Store
from broker.storage.store.values import Value, as_bytes, as_int

REMEMBERED_BATCHES = 5
MAX_SEQUENCE = 2**31 - 1

_BATCH = struct.Struct(">iiqqq")


class Remembered(NamedTuple):
    first_sequence: int
    last_sequence: int
    base_offset: int
    last_offset: int
    timestamp: int


class ProducerEntry:
    __slots__ = ("batches", "epoch", "last_timestamp")

    def __init__(self, epoch: int, last_timestamp: int, batches: list[Remembered]) -> None:
        self.epoch = epoch
        self.last_timestamp = last_timestamp
        self.batches = batches


class Producers:
    """The producers of one partition."""

    def __init__(self) -> None:
        self._entries: dict[int, ProducerEntry] = {}
        self._changed: set[int] = set()

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, producer_id: int) -> bool:
        return producer_id in self._entries

    def check(self, header: BatchHeader) -> Remembered | ErrorCode:
        """Return NONE to append the batch, the batch that it duplicates, or the error to answer with."""
        entry = self._entries.get(header.producer_id)
        if entry is None:
            return ErrorCode.NONE
        first = header.base_sequence
        if header.producer_epoch == entry.epoch:
            last = _advance(first, header.record_count - 1)
            for batch in entry.batches:
                if batch.first_sequence == first and batch.last_sequence == last:
                    return batch
            if first == _advance(entry.batches[-1].last_sequence, 1):
                return ErrorCode.NONE
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        if header.producer_epoch < entry.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        return ErrorCode.NONE if first == 0 else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    def note(self, header: BatchHeader) -> None:
        """Remember an appended batch; its header has the assigned offsets."""
        entry = self._entries.get(header.producer_id)
        if entry is None or entry.epoch != header.producer_epoch:
            entry = self._entries[header.producer_id] = ProducerEntry(header.producer_epoch, -1, [])
        first = header.base_sequence
        last = _advance(first, header.record_count - 1)
        entry.batches.append(Remembered(first, last, header.base_offset, header.last_offset, header.max_timestamp))
        del entry.batches[:-REMEMBERED_BATCHES]
        entry.last_timestamp = header.max_timestamp
        self._changed.add(header.producer_id)

    def expire(self, before_ms: int) -> None:
        """Forget producers that last wrote at or before `before_ms`."""
        for producer_id in [key for key, entry in self._entries.items() if entry.last_timestamp <= before_ms]:
            del self._entries[producer_id]
            self._changed.discard(producer_id)

    # -- in the store

    @classmethod
    def load(cls, store: Store, partition_id: int) -> Producers:
        producers = cls()
        rows = store.query(
            "SELECT producer_id, epoch, last_timestamp, batches FROM producers WHERE partition_id = ?", (partition_id,)
        )
        for producer_id, epoch, timestamp, packed in rows:
            batches = [Remembered(*fields) for fields in _BATCH.iter_unpack(as_bytes(packed))]
            producers._entries[as_int(producer_id)] = ProducerEntry(as_int(epoch), as_int(timestamp), batches)
        return producers

    def save(self, store: Store, partition_id: int) -> None:
        """Store the changes since the last save."""
        if not self._changed:
            return
        rows: list[tuple[Value, ...]] = []
        for producer_id in self._changed:
            entry = self._entries[producer_id]
            packed = b"".join([_BATCH.pack(*batch) for batch in entry.batches])
            rows.append((partition_id, producer_id, entry.epoch, entry.last_timestamp, packed))
        store.execute_many(
            "INSERT INTO producers VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
            " epoch = excluded.epoch, last_timestamp = excluded.last_timestamp, batches = excluded.batches",
            rows,
        )
        self._changed.clear()


def _advance(sequence: int, by: int) -> int:
    """Sequence numbers wrap to 0 after the largest 32-bit number."""
    return (sequence + by) & MAX_SEQUENCE
