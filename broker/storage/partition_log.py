"""What every partition offers: those kept in segment files, and those of __consumer_offsets kept in the store."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from broker.protocol.errors import ErrorCode
from broker.storage.files import FileSlice

LEADER_EPOCH = 0  # a single node never elects another leader


class Appended(NamedTuple):
    """Where a batch got its place; `duplicate`: it had been appended before."""

    base_offset: int
    log_append_time_ms: int  # -1 with CreateTime, except for a duplicate, as Kafka has it
    log_start_offset: int
    duplicate: bool


class PartitionLog(Protocol):
    """Offsets: log start <= high watermark <= log end. Readers see what lies below the high watermark."""

    @property
    def log_start_offset(self) -> int: ...
    @property
    def log_end_offset(self) -> int: ...
    @property
    def high_watermark(self) -> int: ...
    @property
    def leader_epoch(self) -> int: ...
    @property
    def size_bytes(self) -> int: ...

    def append(self, records: memoryview | bytes, *, wall_ms: int) -> Appended | ErrorCode:
        """Append one batch of a client. It is durable, and readers see it, after the next commit."""

    def read(self, offset: int, max_bytes: int, *, at_least_one: bool) -> bytes | FileSlice | None:
        """Whole batches from the one that holds `offset`, at most `max_bytes` (or one batch, if `at_least_one`).

        Empty at the high watermark, None out of range. DamageError if what was stored is not there any more.
        """

    def offset_for_timestamp(self, timestamp: int) -> tuple[int, int] | None:
        """(offset, timestamp) of the first record that is not older than `timestamp`."""

    def offset_of_max_timestamp(self) -> tuple[int, int] | None:
        """(offset, timestamp) of the first record with the largest timestamp."""

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """(epoch, end offset) of the largest epoch not above `epoch`; (-1, -1) for one that never was."""

    def delete_records(self, before_offset: int) -> int | ErrorCode:
        """Move the log start to `before_offset` (-1: the high watermark). Returns the new log start."""
