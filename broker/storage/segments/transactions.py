"""Producers and aborted transactions of one partition, loaded from the store at first use."""

from __future__ import annotations

from contextlib import suppress

from broker.protocol.control_records import Marker, read_marker
from broker.protocol.record_batch import BatchHeader
from broker.protocol.wire_types import DecodeError
from broker.storage.partition_log import AbortedTransaction
from broker.storage.segments.aborted_transactions import AbortedTransactions
from broker.storage.segments.producers import Producers
from broker.storage.store.database import Store


class Transactions:
    """`partition_id` is 0 as long as the store does not know the partition."""

    def __init__(self, store: Store, partition_id: int) -> None:
        self._store = store
        self.partition_id = partition_id
        self._producers: Producers | None = None
        self._aborted: AbortedTransactions | None = None
        self.changed = False  # a transaction began or ended since the last checkpoint, so one is due
        # By producer: epoch and time of the last replayed commit of a transaction that has its epoch for itself.
        self.commits: dict[int, tuple[int, int]] = {}

    @property
    def producers(self) -> Producers:
        if self._producers is None:
            self._producers = Producers.load(self._store, self.partition_id) if self.partition_id else Producers()
        return self._producers

    @property
    def aborted(self) -> AbortedTransactions:
        if self._aborted is None:
            self._aborted = AbortedTransactions(self._store, self.partition_id)
        return self._aborted

    @property
    def first_open_offset(self) -> int | None:
        """Where the oldest open transaction begins. A partition that has one loads its producers when it is opened."""
        if self._producers is None or not self._producers.open:
            return None
        return next(iter(self._producers.open.values()))

    def note(self, header: BatchHeader) -> None:
        """Remember an appended batch of records with a producer id."""
        if self.producers.note(header):
            self.changed = True

    def note_marker(self, marker: Marker, header: BatchHeader) -> None:
        self.changed = True
        first_offset = self.producers.note_marker(marker, header.max_timestamp)
        if first_offset is not None and not marker.is_commit:
            self.aborted.note(marker.producer_id, first_offset, header.last_offset)

    def replay(self, header: BatchHeader, content: bytes) -> None:
        """Note a batch that is in the log already, in the order of offsets; compaction may have changed it."""
        if header.producer_id < 0:
            return
        if header.is_control:
            with suppress(DecodeError):
                marker = read_marker(content)
                if marker is not None:
                    epoch = marker.producer_epoch - 1
                    if marker.is_commit and self.producers.has_open_transaction(marker.producer_id, epoch):
                        self.commits[marker.producer_id] = epoch, header.max_timestamp
                    self.note_marker(marker, header)
        else:
            self.note(header)
            if _last_sequence_is_unknown(header):
                self.producers.forget_sequences(header.producer_id)

    def forget_sequences(self) -> None:
        """Batches are lost: each producer may continue with any sequence."""
        for producer_id in list(self.producers.ids()):
            self.producers.forget_sequences(producer_id)

    def changes_open_transactions(self, header: BatchHeader) -> bool:
        """Whether this batch begins or ends a transaction. Such a batch is on disk only with its checkpoint."""
        return header.is_control or (header.is_transactional and self.producers.begins_transaction(header))

    def aborted_between(self, start: int, end: int) -> list[AbortedTransaction]:
        return self.aborted.between(self.partition_id, start, end) if self.partition_id else []

    def expire_producers(self, before_ms: int) -> None:
        if self._producers is not None:
            self._producers.expire(before_ms)

    def drop_before(self, log_start: int) -> None:
        self.aborted.drop_before(self.partition_id, log_start)

    def save(self) -> None:
        """Write the changes since the last checkpoint to the store."""
        self.changed = False
        if self._producers is not None:
            self._producers.save(self._store, self.partition_id)
        if self._aborted is not None:
            self._aborted.save(self.partition_id)


def _last_sequence_is_unknown(header: BatchHeader) -> bool:
    """Compaction stretches a batch over offsets that it removes, but not the emptied last batch of a producer."""
    return header.record_count not in (0, header.last_offset_delta + 1)
