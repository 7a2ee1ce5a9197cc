"""Records out of what a Fetch brought for one partition: from the asked offset on, committed ones if wanted, no markers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from broker.protocol.record_batch import BatchHeader, Record, batches, check_crc, decode_records
from broker.protocol.wire_types import DecodeError
from kgctl.client.net.errors import KgctlError
from kgctl.model.topic_partition import TopicPartition

ABORT_MARKER = b"\x00\x00\x00\x00"


class Damaged(KgctlError):
    """The broker sent records that cannot be read."""


@dataclass(frozen=True, slots=True)
class AbortedTransaction:
    producer_id: int
    first_offset: int


@dataclass(frozen=True, slots=True)
class ReadBatch:
    """Records of one batch. `next_offset` is where to go on once all of them are used."""

    partition: TopicPartition
    records: list[Record]
    next_offset: int
    has_log_append_time: bool


@dataclass(frozen=True, slots=True)
class Fetched:
    """Raw batches of one partition. `offset` is the first one wanted, `limit` the first one not wanted any more."""

    partition: TopicPartition
    raw: bytes | memoryview
    offset: int
    limit: int | None = None
    aborted: Sequence[AbortedTransaction] | None = None

    def next_offset(self) -> int:
        """Where the next fetch goes on: behind the last whole batch."""
        offset = self.offset
        for _, header in self._whole_batches():
            offset = max(offset, header.next_offset)
        return offset if self.limit is None else min(offset, self.limit)

    def batches(self) -> Iterator[ReadBatch]:
        """Each batch with its records, unpacked when it is asked for; Damaged where that is not possible.

        Batches without a wanted record come too: their `next_offset` counts.
        """
        open_aborts: set[int] = set()
        ahead = sorted(self.aborted or (), key=lambda one: one.first_offset, reverse=True)
        for position, header in self._whole_batches():
            if self.limit is not None and header.base_offset >= self.limit:
                return
            self._check(position, header)
            while ahead and ahead[-1].first_offset <= header.last_offset:
                open_aborts.add(ahead.pop().producer_id)
            records = [] if header.next_offset <= self.offset else self._records(position, header, open_aborts)
            next_offset = header.next_offset if self.limit is None else min(header.next_offset, self.limit)
            yield ReadBatch(self.partition, records, max(next_offset, self.offset), header.has_log_append_time)

    def _records(self, position: int, header: BatchHeader, open_aborts: set[int]) -> list[Record]:
        try:
            if header.is_control:
                marker = decode_records(self.raw, position)
                if marker and marker[0].key == ABORT_MARKER:
                    open_aborts.discard(header.producer_id)
                return []
            if header.is_transactional and header.producer_id in open_aborts:
                return []
            records = decode_records(self.raw, position)
        except DecodeError as error:
            raise self._damaged(header, str(error)) from error
        if header.base_offset < self.offset or (self.limit is not None and header.next_offset > self.limit):
            last = header.last_offset if self.limit is None else self.limit - 1
            return [record for record in records if self.offset <= record.offset <= last]
        return records

    def _whole_batches(self) -> Iterator[tuple[int, BatchHeader]]:
        try:
            yield from batches(self.raw, partial_tail=True)
        except DecodeError as error:
            raise Damaged(f"{self.partition}, from offset {self.offset}: {error}") from error

    def _check(self, position: int, header: BatchHeader) -> None:
        if header.magic != 2:
            raise self._damaged(header, f"record format {header.magic} (before Kafka 0.11) is not supported")
        if not check_crc(self.raw, position, header):
            raise self._damaged(header, "the checksum of the batch is wrong")

    def _damaged(self, header: BatchHeader, reason: str) -> Damaged:
        return Damaged(f"{self.partition}, offset {header.base_offset}: {reason}")
