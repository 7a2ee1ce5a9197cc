"""A batch of records of one partition, and the future of each record in it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeAlias

from broker.light_named_tuples import NamedTuple
from broker.protocol.compression import Codec
from broker.protocol.record_batch import decode_records
from kgctl.client.net.errors import KgctlError, TimedOut
from kgctl.client.producer.core.encoding import (
    BATCH_OVERHEAD_BYTES,
    VARINTS,
    compressed,
    encode_batch,
    headers_bytes,
)
from kgctl.model.topic_partition import TopicPartition

Headers: TypeAlias = "tuple[tuple[str, bytes | None], ...]"


class ProducerIdentity(NamedTuple):
    """Identifies the producer in the broker's check for duplicates."""

    producer_id: int
    producer_epoch: int


NO_IDENTITY = ProducerIdentity(-1, -1)


class RecordMetadata(NamedTuple):
    """Where a record is. The offset is -1 if the broker does not say: with acks=0, or for a duplicate it no longer remembers.

    `timestamp_ms` is the record's, or the broker's with message.timestamp.type=LogAppendTime.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int


class Waiting(Protocol):
    """How a thread waits for the client, and the lock of what it waits for: the engine."""

    @property
    def lock(self) -> AbstractContextManager[Any]: ...

    def wait(self, condition: Callable[[], bool], timeout: float, *, wakes: bool) -> bool: ...


Callback: TypeAlias = "Callable[[RecordMetadata, KgctlError | None], Any]"
Notification: TypeAlias = "tuple[Delivery, Callable[[Delivery], Any]]"


class Batch:
    """Records that are sent, acknowledged and retried together, and the memory that is reserved for them.

    `position` counts the records of the producer's epoch to the partition before this batch; the sequence on the wire
    is its lowest 31 bits. `tags` has, if the caller counts, the number of each record (a line) and the bytes of its payload.
    """

    __slots__ = (
        "attempts",
        "base_offset",
        "base_timestamp",
        "codec",
        "count",
        "created_ms",
        "drained_ms",
        "encoded",
        "error",
        "halves",
        "has_new_sequence",
        "identity",
        "is_done",
        "is_full",
        "is_settled",
        "is_transactional",
        "last_attempt_ms",
        "last_error",
        "leader_epoch",
        "leader_since_attempt",
        "log_append_ms",
        "max_timestamp",
        "notifications",
        "partition",
        "parts",
        "position",
        "record_errors",
        "reserved_bytes",
        "retry_at_ms",
        "size_bytes",
        "tags",
        "waiting",
    )

    def __init__(self, partition: TopicPartition, now_ms: int, reserved_bytes: int, waiting: Waiting) -> None:
        self.partition, self.created_ms, self.reserved_bytes, self.waiting = partition, now_ms, reserved_bytes, waiting
        self.drained_ms = self.last_attempt_ms = self.retry_at_ms = now_ms
        self.is_full = self.is_settled = False
        self.parts: list[bytes] = []
        self.count = self.attempts = 0
        self.size_bytes = BATCH_OVERHEAD_BYTES
        self.base_timestamp = self.max_timestamp = -1
        self.codec = Codec.NONE
        self.encoded: bytes | None = None
        self.identity, self.position, self.is_transactional = NO_IDENTITY, -1, False
        self.has_new_sequence = False
        self.leader_epoch, self.leader_since_attempt = -1, 0
        self.error: KgctlError | None = None
        self.last_error: KgctlError | None = None
        self.record_errors: dict[int, KgctlError] = {}
        self.base_offset = self.log_append_ms = -1
        self.is_done = False
        self.halves: tuple[Batch, Batch] | None = None
        self.notifications: list[Notification] | None = None
        self.tags: list[tuple[int, int]] | None = None

    def append(self, timestamp: int, key: bytes | None, value: bytes | None, headers: Headers, max_bytes: int) -> bool:
        """Add a record. False if the batch is closed, or has records and would grow above `max_bytes`."""
        count = self.count
        if not count:
            self.base_timestamp = self.max_timestamp = timestamp
        varints = VARINTS
        head = b"\0" + varints[timestamp - self.base_timestamp] + varints[count]
        head += b"\x01" if key is None else varints[len(key)] + key
        end = b"\0" if not headers else headers_bytes(headers)
        if value is None:
            size = len(head) + 1 + len(end)
            head, value = varints[size] + head, b"\x01"
        else:
            head += varints[len(value)]
            size = len(head) + len(value) + len(end)
            head = varints[size] + head
        grown = self.size_bytes + len(head) + len(value) + len(end)
        if (grown > max_bytes and count) or self.encoded is not None:
            self.is_full = True
            return False
        self.parts += (head, value, end)
        self.size_bytes, self.count = grown, count + 1
        if timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
        return True

    # --- the bytes that are sent ---

    @property
    def has_sequence(self) -> bool:
        return self.position >= 0

    @property
    def end_position(self) -> int:
        return self.position + self.count

    def close(self, codec: Codec, level: int | None = None) -> bytes:
        """Encode the batch; it no longer grows."""
        if self.encoded is None:
            self.codec = codec
            self.encoded = self._encode(compressed(self.parts, codec, level))
            self.parts = []
        return self.encoded

    def assign(self, identity: ProducerIdentity, position: int, *, is_transactional: bool) -> None:
        """Fix the sequence of a batch that is not encoded yet."""
        assert self.encoded is None
        self.identity, self.position, self.is_transactional = identity, position, is_transactional

    def assign_again(self, identity: ProducerIdentity, position: int) -> None:
        """A new sequence for a batch that was sent: the broker has refused the one it had."""
        self.identity, self.position, self.has_new_sequence = identity, position, True
        if self.encoded is not None:
            self.encoded = self._encode(self.encoded[BATCH_OVERHEAD_BYTES:])

    def _encode(self, body: bytes) -> bytes:
        return encode_batch(
            body,
            self.count,
            self.base_timestamp,
            self.max_timestamp,
            codec=self.codec,
            producer_id=self.identity.producer_id,
            producer_epoch=self.identity.producer_epoch,
            base_sequence=self.position & 0x7FFFFFFF if self.has_sequence else -1,
            is_transactional=self.is_transactional,
        )

    def split(self) -> tuple[Batch, Batch]:
        """Two batches with a half of the records each, whose deliveries are those of this one."""
        assert self.encoded is not None
        records = decode_records(self.encoded)
        middle = self.count // 2
        made = []
        for start, end in ((0, middle), (middle, self.count)):
            half = Batch(self.partition, self.created_ms, 0, self.waiting)
            for record in records[start:end]:
                half.append(record.timestamp, record.key, record.value, record.headers, 1 << 31)
            if self.has_sequence:
                half.assign(self.identity, self.position + start, is_transactional=self.is_transactional)
            half.attempts, half.last_attempt_ms = self.attempts, self.last_attempt_ms
            half.has_new_sequence = self.has_new_sequence
            half.tags = None if self.tags is None else self.tags[start:end]
            made.append(half)
        self.halves = (made[0], made[1])
        self.encoded = b""
        for delivery, callback in self.notifications or ():
            place, _ = delivery.place()
            place.notify(delivery, callback)
        return self.halves

    # --- retries ---

    def note_leader(self, epoch: int) -> None:
        if epoch >= 0 and epoch != self.leader_epoch:
            self.leader_epoch, self.leader_since_attempt = epoch, self.attempts

    @property
    def has_new_leader(self) -> bool:
        """Whether the leader has changed since the last attempt (KIP-951): then a retry need not wait."""
        return self.attempts >= 1 and self.leader_since_attempt == self.attempts

    # --- the outcome ---

    @property
    def is_complete(self) -> bool:
        """Whether all records are acknowledged or have failed, and their callbacks have run."""
        halves = self.halves
        return self.is_done if halves is None else halves[0].is_complete and halves[1].is_complete

    def notify(self, delivery: Delivery, callback: Callable[[Delivery], Any]) -> None:
        """Call `callback` when the outcome is known."""
        if self.notifications is None:
            self.notifications = []
        self.notifications.append((delivery, callback))

    def metadata_of(self, index: int, timestamp: int) -> RecordMetadata:
        offset = self.base_offset + index if self.base_offset >= 0 and self.error is None else -1
        return RecordMetadata(*self.partition, offset, timestamp if self.log_append_ms < 0 else self.log_append_ms)

    def has_keyless_records(self) -> bool:
        return any(record.key is None for record in decode_records(self.encoded or b""))

    def describe(self, noun: str) -> str:
        """The records for error messages: `line 3`, `lines 3 to 9`, or how many."""
        if self.tags:
            first, last = self.tags[0][0], self.tags[-1][0]
            return f"{noun} {first}" if first == last else f"{noun}s {first} to {last}"
        return f"1 {noun}" if self.count == 1 else f"{self.count} {noun}s"


class Delivery:
    """The future of one record.

    `result()` returns where the record is, or raises why it was not written.
    """

    __slots__ = ("_batch", "_index", "_timestamp")

    def __init__(self, batch: Batch, index: int, timestamp: int) -> None:
        self._batch, self._index, self._timestamp = batch, index, timestamp

    @property
    def begins_batch(self) -> bool:
        return self._index == 0

    def done(self) -> bool:
        """Whether the record is acknowledged or has failed."""
        batch = self._batch
        return batch.is_settled if batch.halves is None else self.place()[0].is_settled

    def result(self, timeout: float | None = None) -> RecordMetadata:
        """Wait, at most `timeout` seconds, and return where the record is. Raises its error, or TimedOut."""
        error = self.exception(timeout)
        if error is not None:
            raise error.with_traceback(None)
        return self.metadata()

    def exception(self, timeout: float | None = None) -> KgctlError | None:
        """Wait, and return the error of the record, or None."""
        seconds = 1e9 if timeout is None else timeout
        if not self.done() and not self._batch.waiting.wait(self.done, seconds, wakes=False):
            raise TimedOut(f"{self._batch.partition}: no acknowledgement within {timeout:g} s")
        return self.error()

    def add_done_callback(self, callback: Callable[[Delivery], Any]) -> None:
        """Call `callback(delivery)` on the client's thread once the outcome is known; at once if it is."""
        with self._batch.waiting.lock:
            batch, _ = self.place()
            if not batch.is_done:
                batch.notify(self, callback)
                return
        callback(self)

    def metadata(self) -> RecordMetadata:
        """Topic and partition, and once it is done, the offset."""
        batch, index = self.place()
        return batch.metadata_of(index, self._timestamp)

    def error(self) -> KgctlError | None:
        batch, index = self.place()
        return batch.record_errors.get(index, batch.error) if batch.record_errors else batch.error

    def place(self) -> tuple[Batch, int]:
        """The batch that has the record now, and which one of its records it is."""
        batch, index = self._batch, self._index
        while batch.halves is not None:
            first, second = batch.halves
            batch, index = (first, index) if index < first.count else (second, index - first.count)
        return batch, index
