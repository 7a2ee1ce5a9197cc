"""The producers of one partition: which batch may follow, and which transactions are open.

The rules are Kafka's (ProducerStateManager). A batch equal to one of the producer's last five is a duplicate; any other
must continue the sequence, or start at 0 with a newer epoch. An unknown producer may start anywhere. The first
transactional batch begins a transaction, and a marker ends it. A marker may carry a newer epoch (KIP-890).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

from broker.light_named_tuples import NamedTuple
from broker.protocol.control_records import Marker
from broker.protocol.errors import ErrorCode
from broker.protocol.record_batch import BatchHeader
from broker.storage.partition_log import ProducerState
from broker.storage.store.database import Store
from broker.storage.store.values import Value, as_bytes, as_int

REMEMBERED_BATCHES = 5
MAX_SEQUENCE = 2**31 - 1
NO_SEQUENCE = -1
NO_OFFSET = -1

_BATCH = struct.Struct(">iiqqq")


class Remembered(NamedTuple):
    first_sequence: int
    last_sequence: int
    base_offset: int
    last_offset: int
    timestamp: int


class LastWritten(NamedTuple):
    """The last batch of records, or with the offset -1 a marker, by which a producer has written in this epoch."""

    epoch: int
    offset: int


class ProducerEntry:
    __slots__ = ("batches", "coordinator_epoch", "epoch", "last_timestamp", "transaction_offset")

    def __init__(
        self,
        epoch: int,
        last_timestamp: int,
        batches: list[Remembered],
        coordinator_epoch: int = -1,
        transaction_offset: int = NO_OFFSET,
    ) -> None:
        self.epoch = epoch
        self.last_timestamp = last_timestamp
        self.batches = batches  # of this epoch; none if it has written only markers
        self.coordinator_epoch = coordinator_epoch
        self.transaction_offset = transaction_offset

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    def use_epoch(self, epoch: int) -> None:
        if epoch != self.epoch:
            self.epoch = epoch
            self.batches = []


class _Unverified:
    """The first batches of transactions that the partition has not taken yet: Kafka's VerificationStateEntry."""

    __slots__ = ("adds_partition", "epoch", "lowest_sequence", "since_ms")

    def __init__(self, epoch: int, sequence: int, adds_partition: bool, wall_ms: int) -> None:
        self.adds_partition = adds_partition
        self.epoch = epoch
        self.lowest_sequence = sequence
        self.since_ms = wall_ms

    def note(self, epoch: int, sequence: int) -> None:
        if epoch > self.epoch or (epoch == self.epoch and sequence < self.lowest_sequence):
            self.epoch, self.lowest_sequence = epoch, sequence

    def is_overtaken_by(self, header: BatchHeader, *, is_unknown: bool) -> bool:
        """As in Kafka, whatever the epochs are: a batch with a newer epoch is noted before it is checked."""
        return header.base_sequence > self.lowest_sequence or (
            self.adds_partition and is_unknown and header.base_sequence != 0
        )

    def survives(self, marker: Marker) -> bool:
        """With transaction.version 2, markers have the epoch of the next transaction: one with the batch's epoch ended an earlier one."""
        return self.adds_partition and marker.producer_epoch == self.epoch


class Producers:
    """The producers of one partition. `open` has the offset at which each open transaction begins, in order of offsets."""

    def __init__(self) -> None:
        self._entries: dict[int, ProducerEntry] = {}
        self._changed: set[int] = set()
        self._forgotten: set[int] = set()
        self._unverified: dict[int, _Unverified] = {}
        self.open: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, producer_id: int) -> bool:
        return producer_id in self._entries

    def has_open_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        return producer_id in self.open and self._entries[producer_id].epoch == producer_epoch

    def begins_transaction(self, header: BatchHeader) -> bool:
        """Without a producer id, Kafka appends a transactional batch like any other."""
        return header.is_transactional and header.producer_id >= 0 and header.producer_id not in self.open

    # -- batches

    def check(self, header: BatchHeader, wall_ms: int) -> Remembered | ErrorCode:
        """Return NONE to append the batch, the batch that it duplicates, or the error to answer with."""
        entry = self._entries.get(header.producer_id)
        if entry is not None and header.producer_epoch < entry.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if header.is_transactional and not self.has_open_transaction(header.producer_id, header.producer_epoch):
            self._note_unverified(header, False, wall_ms)
        first = header.base_sequence
        if entry is not None and header.producer_epoch == entry.epoch:
            last = _advance(first, header.record_count - 1)
            for batch in entry.batches:
                if batch.first_sequence == first and batch.last_sequence == last:
                    return batch
        unverified = self._unverified.get(header.producer_id) if self._unverified else None
        is_unknown = entry is None or not entry.batches
        if unverified is not None and unverified.is_overtaken_by(header, is_unknown=is_unknown):
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        return ErrorCode.NONE if entry is None else _follows(entry, header)

    def start_verification(self, header: BatchHeader, adds_partition: bool, wall_ms: int) -> ErrorCode:
        entry = self._entries.get(header.producer_id)
        if entry is not None and header.producer_epoch < entry.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        self._note_unverified(header, adds_partition, wall_ms)
        return ErrorCode.NONE

    def _note_unverified(self, header: BatchHeader, adds_partition: bool, wall_ms: int) -> None:
        epoch, sequence = header.producer_epoch, header.base_sequence
        known = self._unverified.get(header.producer_id)
        if known is None:
            self._unverified[header.producer_id] = _Unverified(epoch, sequence, adds_partition, wall_ms)
        else:
            known.note(epoch, sequence)

    def note(self, header: BatchHeader) -> bool:
        """Remember an appended batch of records, whose header has the assigned offsets. True if it begins a transaction."""
        producer_id = header.producer_id
        entry = self._entries.get(producer_id)
        if entry is None:
            entry = self._entries[producer_id] = ProducerEntry(header.producer_epoch, -1, [])
        else:
            entry.use_epoch(header.producer_epoch)
        first = header.base_sequence
        last = _advance(first, header.last_offset_delta)
        entry.batches.append(Remembered(first, last, header.base_offset, header.last_offset, header.max_timestamp))
        del entry.batches[:-REMEMBERED_BATCHES]
        entry.last_timestamp = header.max_timestamp
        self._changed.add(producer_id)
        if not header.is_transactional:
            return False
        self._unverified.pop(producer_id, None)
        if entry.transaction_offset >= 0:
            return False
        entry.transaction_offset = self.open[producer_id] = header.base_offset
        return True

    # -- markers

    def check_marker(self, marker: Marker) -> ErrorCode:
        entry = self._entries.get(marker.producer_id)
        if entry is not None:
            if marker.producer_epoch < entry.epoch:
                return ErrorCode.INVALID_PRODUCER_EPOCH
            if marker.coordinator_epoch < entry.coordinator_epoch:
                return ErrorCode.TRANSACTION_COORDINATOR_FENCED
        return ErrorCode.NONE

    def note_marker(self, marker: Marker, timestamp: int) -> int | None:
        """Remember an appended marker. Return where the transaction that it ends begins, if there is one."""
        producer_id = marker.producer_id
        entry = self._entries.get(producer_id)
        if entry is None:
            entry = self._entries[producer_id] = ProducerEntry(marker.producer_epoch, timestamp, [])
        else:
            entry.use_epoch(marker.producer_epoch)
        entry.coordinator_epoch = marker.coordinator_epoch
        entry.last_timestamp = timestamp
        entry.transaction_offset = NO_OFFSET
        self._changed.add(producer_id)
        unverified = self._unverified.get(producer_id)
        if unverified is not None and not unverified.survives(marker):
            del self._unverified[producer_id]
        return self.open.pop(producer_id, None)

    # -- all producers

    def states(self) -> Iterator[ProducerState]:
        for producer_id, entry in self._entries.items():
            yield ProducerState(
                producer_id,
                entry.epoch,
                entry.last_sequence,
                entry.last_timestamp,
                entry.coordinator_epoch,
                entry.transaction_offset,
            )

    def expire(self, before_ms: int) -> None:
        """Forget producers that last wrote at or before `before_ms` and have no open transaction."""
        expired = [
            producer_id
            for producer_id, entry in self._entries.items()
            if entry.last_timestamp <= before_ms and entry.transaction_offset < 0
        ]
        for producer_id in expired:
            self.forget(producer_id)
        for producer_id in [key for key, entry in self._unverified.items() if entry.since_ms <= before_ms]:
            del self._unverified[producer_id]

    def last_written(self, producer_id: int) -> LastWritten | None:
        entry = self._entries.get(producer_id)
        if entry is None:
            return None
        return LastWritten(entry.epoch, entry.batches[-1].last_offset if entry.batches else NO_OFFSET)

    def ids(self) -> Iterable[int]:
        return self._entries.keys()

    def forget(self, producer_id: int) -> None:
        del self._entries[producer_id]
        self._changed.discard(producer_id)
        self._forgotten.add(producer_id)

    def forget_sequences(self, producer_id: int) -> None:
        """The producer may continue with any sequence, or if its transaction is open, after that was aborted."""
        if producer_id in self.open:
            self._entries[producer_id].batches = []
            self._changed.add(producer_id)
        else:
            self.forget(producer_id)

    # -- in the store

    @classmethod
    def load(cls, store: Store, partition_id: int) -> Producers:
        producers = cls()
        rows = store.query(
            "SELECT producer_id, epoch, last_timestamp, batches, coordinator_epoch, transaction_offset FROM producers"
            " WHERE partition_id = ?",
            (partition_id,),
        )
        opened: list[tuple[int, int]] = []
        for row in rows:
            producer_id, epoch, timestamp, coordinator_epoch, offset = map(as_int, (*row[:3], *row[4:]))
            batches = [Remembered(*fields) for fields in _BATCH.iter_unpack(as_bytes(row[3]))]
            producers._entries[producer_id] = ProducerEntry(epoch, timestamp, batches, coordinator_epoch, offset)
            if offset >= 0:
                opened.append((offset, producer_id))
        producers.open = {producer_id: offset for offset, producer_id in sorted(opened)}
        return producers

    def save(self, store: Store, partition_id: int) -> None:
        """Store the changes since the last save."""
        if self._forgotten:
            store.execute_many(
                "DELETE FROM producers WHERE partition_id = ? AND producer_id = ?",
                [(partition_id, producer_id) for producer_id in self._forgotten],
            )
            self._forgotten.clear()
        if not self._changed:
            return
        rows: list[tuple[Value, ...]] = []
        for producer_id in self._changed:
            entry = self._entries[producer_id]
            packed = b"".join([_BATCH.pack(*batch) for batch in entry.batches])
            numbers = entry.coordinator_epoch, entry.transaction_offset
            rows.append((partition_id, producer_id, entry.epoch, entry.last_timestamp, packed, *numbers))
        store.execute_many("INSERT OR REPLACE INTO producers VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        self._changed.clear()


def _follows(entry: ProducerEntry, header: BatchHeader) -> ErrorCode:
    """Whether the batch, of this epoch or a newer one, continues what the producer has written."""
    expected = _advance(entry.last_sequence, 1) if header.producer_epoch == entry.epoch else 0
    if header.base_sequence != expected:
        return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    if entry.transaction_offset >= 0 and not header.is_transactional:
        return ErrorCode.INVALID_TXN_STATE
    return ErrorCode.NONE


def open_transactions(store: Store) -> Iterator[tuple[bytes, int, int, int]]:
    """(topic id, partition, producer id, producer epoch) of all open transactions, as of the last checkpoints."""
    rows = store.query(
        "SELECT p.topic_id, p.partition, s.producer_id, s.epoch FROM producers AS s"
        " CROSS JOIN partitions AS p ON p.partition_id = s.partition_id WHERE s.transaction_offset >= 0"
    )
    for topic_id, partition, producer_id, epoch in rows:
        yield as_bytes(topic_id), as_int(partition), as_int(producer_id), as_int(epoch)


def _advance(sequence: int, by: int) -> int:
    """Sequence numbers wrap to 0 after the largest 32-bit number."""
    return (sequence + by) & MAX_SEQUENCE
