"""The answer of one Fetch about one partition, decoded batch by batch as the application takes records. Kafka's CompletedFetch."""

from __future__ import annotations

from broker.protocol.messages.fetch import FetchResponse
from broker.protocol.wire_types import DecodeError
from kgctl.client.consumer.consumer_record import ConsumerRecord, decode_batch
from kgctl.client.consumer.errors import CorruptRecord
from kgctl.client.consumer.fetched import Damaged, Fetched, fetched_row
from kgctl.model.topic_partition import TopicPartition


class CompletedFetch:
    """Raw batches from `next_offset` on, which moves behind the records that were taken.

    `end_offset` is the offset behind the last complete batch: where the next Fetch continues.
    """

    __slots__ = (
        "_ahead",
        "_batches",
        "_decoded_epoch",
        "_decoded_to",
        "_error",
        "end_offset",
        "fetched",
        "is_drained",
        "next_offset",
        "offset_epoch",
        "partition",
        "size_bytes",
    )

    def __init__(
        self,
        partition: TopicPartition,
        row: FetchResponse.Partition,
        offset: int,
        *,
        committed_only: bool = False,
        check_crcs: bool = True,
    ) -> None:
        self.partition = partition
        self.fetched = fetched_row(partition, row, offset, committed_only=committed_only, check_crcs=check_crcs)
        self.size_bytes = len(self.fetched.raw)
        self.next_offset = offset
        self.offset_epoch: int | None = None  # of the record before next_offset, once one was taken
        self.is_drained = False
        self._batches = self.fetched.checked_payloads()
        self._ahead: list[ConsumerRecord] = []  # decoded, not taken
        self._decoded_to = offset
        self._decoded_epoch: int | None = None
        self._error: CorruptRecord | None = None
        try:
            self.end_offset = self.fetched.next_offset()
        except Damaged as error:
            self.end_offset = offset
            self._error = CorruptRecord(partition, offset, error.next_offset, str(error))

    @property
    def is_consumed(self) -> bool:
        """Nothing is left to take: neither records nor an error."""
        return self.is_drained or (self.next_offset >= self.end_offset and self._error is None)

    def take(self, count: int) -> list[ConsumerRecord]:
        """Up to `count` records; fewer only at the end, or before damage.

        Raises CorruptRecord if the record at next_offset cannot be read, each time.
        """
        out = self._ahead
        while len(out) < count and self._error is None:
            if not self._decode_next(out):
                break
        if len(out) > count:
            taken, self._ahead = out[:count], out[count:]
            last = taken[-1]
            self.next_offset, self.offset_epoch = last.offset + 1, last.leader_epoch
            return taken
        self._ahead = []
        self.next_offset, self.offset_epoch = self._decoded_to, self._decoded_epoch
        if self._error is not None and not out:
            raise self._error
        return out

    def take_raw(self, limit: int | None = None) -> Fetched:
        """Everything that was not taken yet, undecoded; offsets from `limit` on are not wanted."""
        rest = Fetched(
            self.partition, self.fetched.raw, self.next_offset, limit, self.fetched.aborted, self.fetched.check_crcs
        )
        self.next_offset = self.end_offset
        self.drain()
        return rest

    def drain(self) -> None:
        """Give up the rest."""
        self.is_drained = True
        self._ahead = []

    def _decode_next(self, out: list[ConsumerRecord]) -> bool:
        """Add the records of the next batch; false behind the last one."""
        try:
            found = next(self._batches, None)
        except Damaged as error:
            self._error = CorruptRecord(self.partition, self._decoded_to, error.next_offset, str(error))
            return True
        if found is None:
            self.is_drained = True
            return False
        _, header, is_wanted, payload = found
        if is_wanted:
            before = len(out)
            try:
                decode_batch(payload, header, self.partition.topic, self.partition.partition, out)
            except DecodeError as error:
                del out[before:]
                damaged = self.fetched.damaged(header, str(error))
                self._error = CorruptRecord(self.partition, self._decoded_to, damaged.next_offset, str(damaged))
                return True
            if header.base_offset < self.fetched.offset:
                out[before:] = [one for one in out[before:] if one.offset >= self.fetched.offset]
        if header.next_offset > self._decoded_to:
            self._decoded_to = header.next_offset
            epoch = header.partition_leader_epoch
            self._decoded_epoch = epoch if epoch >= 0 else None
        return True
