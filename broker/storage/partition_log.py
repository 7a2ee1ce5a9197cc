"""The interface of a partition, kept in segment files or as rows of the store."""

from __future__ import annotations

from typing import Protocol

from broker.light_named_tuples import NamedTuple
from broker.protocol.control_records import Marker
from broker.protocol.errors import ErrorCode
from broker.storage.files import FileSlice

LEADER_EPOCH = 0  # a single node never elects another leader


class Appended(NamedTuple):
    """The place of an appended batch. `duplicate`: an earlier append stored it."""

    base_offset: int
    log_append_time_ms: int  # -1 with CreateTime, except for a duplicate, like Kafka
    log_start_offset: int
    duplicate: bool


class AbortedTransaction(NamedTuple):
    producer_id: int
    first_offset: int


class ProducerState(NamedTuple):
    """The state of a producer in a partition. -1: no sequence, no coordinator epoch, no open transaction."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    current_txn_start_offset: int


class PartitionLog(Protocol):
    """Offsets: log start <= high watermark <= log end. Readers see the records below the high watermark.

    The last stable offset is the first offset of the oldest open transaction, or else the high watermark. It may be below
    the log start: DeleteRecords passes open transactions.
    """

    @property
    def log_start_offset(self) -> int: ...
    @property
    def log_end_offset(self) -> int: ...
    @property
    def high_watermark(self) -> int: ...
    @property
    def last_stable_offset(self) -> int: ...
    @property
    def leader_epoch(self) -> int: ...
    @property
    def size_bytes(self) -> int: ...

    def append(self, records: memoryview | bytes, *, wall_ms: int) -> Appended | ErrorCode:
        """Append one batch of a client. It is durable and visible after the next flush.

        A transactional batch begins a transaction, unless one of its producer is open: the caller has verified that it is
        ongoing.
        """

    def append_marker(self, marker: Marker, *, wall_ms: int) -> Appended | ErrorCode:
        """Append the marker that ends a producer's transaction, also if none is open here."""

    def has_open_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        """Whether this producer has written to a transaction here, with this epoch, and no marker ended it."""

    def start_verification(self, records: memoryview | bytes, *, adds_partition: bool, wall_ms: int) -> ErrorCode:
        """Note a batch of a transaction that is not open here: no later batch may overtake it, even if its verification fails.

        INVALID_PRODUCER_EPOCH if its epoch is old. `adds_partition`: the request adds the partition to the transaction (KIP-890),
        so a producer that is unknown here must start with sequence 0.
        """

    def read(
        self, offset: int, max_bytes: int, *, at_least_one: bool, committed: bool = False
    ) -> bytes | FileSlice | None:
        """Return whole batches from the one with `offset`, at most `max_bytes` (or one batch, if `at_least_one`).

        Empty at the high watermark, or with `committed` from the last stable offset on; None out of range. DamageError if
        stored bytes are missing or changed.
        """

    def aborted_transactions(self, start: int, end: int) -> list[AbortedTransaction]:
        """The aborted transactions with records at start <= offset < end."""

    def producer_states(self) -> list[ProducerState]:
        """All producers that the partition knows."""

    def offset_for_timestamp(self, timestamp: int) -> tuple[int, int] | None:
        """Return (offset, timestamp) of the first record at or after `timestamp`."""

    def offset_of_max_timestamp(self) -> tuple[int, int] | None:
        """Return (offset, timestamp) of the first record with the largest timestamp."""

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """Return (epoch, end offset) of the largest epoch not above `epoch`; (-1, -1) for one that never existed."""

    def delete_records(self, before_offset: int) -> int | ErrorCode:
        """Move the log start to `before_offset` (-1: the high watermark), and return it."""
