"""The records of one fetched partition: from the requested offset on, without markers and aborted transactions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from broker.light_dataclasses import dataclass
from broker.protocol.messages.fetch import FetchResponse
from broker.protocol.record_batch import BatchHeader, Record, batches, check_payload, decode_records, payload_of
from broker.protocol.wire_types import DecodeError
from kgctl.client.net.errors import KgctlError
from kgctl.model.topic_partition import TopicPartition

_ABORT_MARKER = b"\x00\x00\x00\x00"
# The most bytes that the records of one batch may take when they are decompressed. Brokers limit the compressed size only, by
# max.message.bytes, and 200 MiB of text may fit in 1 MiB; but one batch must not fill the memory.
MOST_PLAIN_BYTES = 512 << 20


class Damaged(KgctlError):
    """The broker sent records that cannot be decoded. `next_offset` is the offset behind them, if their header is readable."""

    def __init__(self, message: str, next_offset: int | None = None) -> None:
        self.next_offset = next_offset
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class AbortedTransaction:
    producer_id: int
    first_offset: int


@dataclass(frozen=True, slots=True)
class ReadBatch:
    """The wanted records of one batch. Reading continues at `next_offset` once all of them are processed."""

    partition: TopicPartition
    records: list[Record]
    next_offset: int
    has_log_append_time: bool


@dataclass(frozen=True, slots=True)
class Fetched:
    """Raw batches of one partition. `offset` is the first wanted offset; offsets from `limit` on are not wanted.

    `aborted` lists the aborted transactions to leave out; None reads uncommitted records too.
    """

    partition: TopicPartition
    raw: bytes | memoryview
    offset: int
    limit: int | None = None
    aborted: Sequence[AbortedTransaction] | None = None
    check_crcs: bool = True

    def next_offset(self) -> int:
        """Where the next fetch continues: after the last complete batch."""
        offset = self.offset
        for _, header in self._complete_batches():
            offset = max(offset, header.next_offset)
        return offset if self.limit is None else min(offset, self.limit)

    def batches(self) -> Iterator[ReadBatch]:
        """Each batch with its wanted records, decoded lazily. Raises Damaged for a batch that cannot be decoded.

        Batches without wanted records are included, because their `next_offset` counts.
        """
        for position, header, is_wanted in self.checked_batches():
            records = self._wanted_records(position, header) if is_wanted else []
            next_offset = header.next_offset if self.limit is None else min(header.next_offset, self.limit)
            yield ReadBatch(self.partition, records, max(next_offset, self.offset), header.has_log_append_time)

    def checked_batches(self) -> Iterator[tuple[int, BatchHeader, bool]]:
        """Position in `raw`, header, and whether the batch may hold wanted records, for each batch before the limit.

        Raises Damaged.
        """
        for position, header, is_wanted, _ in self.checked_payloads():
            yield position, header, is_wanted

    def checked_payloads(self) -> Iterator[tuple[int, BatchHeader, bool, bytes]]:
        """As `checked_batches`, and the records as they are compressed: copied once, for the checksum and the caller.

        Control batches, batches before the offset and batches of aborted transactions hold none. Raises Damaged.
        """
        open_aborts: set[int] = set()
        ahead = sorted(self.aborted or (), key=lambda one: one.first_offset, reverse=True)
        for position, header in self._complete_batches():
            if self.limit is not None and header.base_offset >= self.limit:
                return
            payload = self._check(position, header)
            while ahead and ahead[-1].first_offset <= header.last_offset:
                open_aborts.add(ahead.pop().producer_id)
            if header.is_control:
                marker = self.decode(position, header)
                if marker and marker[0].key == _ABORT_MARKER:
                    open_aborts.discard(header.producer_id)
                yield position, header, False, payload
            else:
                is_aborted = header.is_transactional and header.producer_id in open_aborts
                yield position, header, header.next_offset > self.offset and not is_aborted, payload

    def decode(self, position: int, header: BatchHeader) -> list[Record]:
        """All records of a batch. Raises Damaged."""
        try:
            return decode_records(self.raw, position, max_decompressed_bytes=MOST_PLAIN_BYTES)
        except DecodeError as error:
            raise self.damaged(header, str(error)) from error

    def damaged(self, header: BatchHeader, reason: str) -> Damaged:
        behind = header.next_offset if header.next_offset > self.offset else None
        return Damaged(f"{self.partition}, offset {header.base_offset}: {reason}", behind)

    def _wanted_records(self, position: int, header: BatchHeader) -> list[Record]:
        records = self.decode(position, header)
        if header.base_offset < self.offset or (self.limit is not None and header.next_offset > self.limit):
            last = header.last_offset if self.limit is None else self.limit - 1
            return [record for record in records if self.offset <= record.offset <= last]
        return records

    def _complete_batches(self) -> Iterator[tuple[int, BatchHeader]]:
        try:
            yield from batches(self.raw, partial_tail=True)
        except DecodeError as error:
            raise Damaged(f"{self.partition}, from offset {self.offset}: {error}") from error

    def _check(self, position: int, header: BatchHeader) -> bytes:
        """The payload."""
        if header.magic != 2:
            raise self.damaged(header, f"record format {header.magic} (before Kafka 0.11) is not supported")
        payload = payload_of(self.raw, position, header)
        if self.check_crcs and not check_payload(self.raw, position, header, payload):
            raise self.damaged(header, "the checksum of the batch is wrong")
        return payload


def fetched_row(
    partition: TopicPartition,
    row: FetchResponse.Partition,
    offset: int,
    limit: int | None = None,
    *,
    committed_only: bool = False,
    check_crcs: bool = True,
) -> Fetched:
    """What an answer has of one partition, from the requested offset on."""
    aborted = None
    if committed_only:
        aborted = [AbortedTransaction(one.producer_id, one.first_offset) for one in row.aborted_transactions or ()]
    raw = row.records or b""
    if isinstance(raw, memoryview) and 2 * len(raw) < memoryview(raw.obj).nbytes:
        raw = bytes(raw)  # a few records must not keep the whole answer in memory
    return Fetched(partition, raw, offset, limit, aborted, check_crcs)
