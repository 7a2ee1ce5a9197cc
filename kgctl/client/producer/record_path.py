"""The path of a record from `send` into a batch, for both faces: interceptors, serializers, partitioner, accumulator."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from broker.light_named_tuples import NamedTuple
from kgctl.client.net.errors import BadValue, KgctlError, NotFound, missing_partition
from kgctl.client.producer.core.batch import Batch, Callback, Delivery, Headers, RecordMetadata
from kgctl.client.producer.core.buffer import Reservation
from kgctl.client.producer.core.client import ProducerCore
from kgctl.client.producer.core.errors import BufferFull, ProducerClosed
from kgctl.client.producer.interceptors import Interceptors, ProducerRecord
from kgctl.client.producer.partitioner import partition_of_key
from kgctl.client.producer.partitioners import Partitioner, Partitions, UnusablePartitioner, by_key

_MOST_NAME_BYTES = 0x7FFF
# A serializer gets the topic and what was passed to `send`.
Serializer: TypeAlias = "Callable[[str, Any], bytes | None]"


class Blocked(NamedTuple):
    """A record that cannot be taken yet: wait for the condition, and pass this again."""

    condition: Callable[[], bool]
    expired: Callable[[float], KgctlError]
    reservation: Reservation | None = None
    partition: int | None = None


class RecordPath:
    """`make` gives futures: `Delivery`, or a kind of it that can be awaited."""

    def __init__(
        self,
        core: ProducerCore,
        now_ms: Callable[[], int],
        wake: Callable[[], None],
        make: type[Delivery],
        *,
        key_serializer: Serializer | None = None,
        value_serializer: Serializer | None = None,
        partitioner: Partitioner = by_key,
        interceptors: Interceptors | None = None,
    ) -> None:
        self.core, self._now_ms, self._wake, self._make = core, now_ms, wake, make
        self._key_serializer, self._value_serializer = key_serializer, value_serializer
        self._partitioner = partitioner
        self._is_by_key = partitioner is by_key
        self.interceptors = interceptors or Interceptors(())
        self._topic, self._count_of = core.accumulator.topic, core.metadata.partition_count

    # --- without the lock ---

    def key_bytes(self, topic: str, key: Any) -> bytes | None:
        """The key as it is sent."""
        if self._key_serializer is not None:
            key = self._key_serializer(topic, key)
        return key if key is None or key.__class__ is bytes else _bytes(key, "key")

    def value_bytes(self, topic: str, value: Any) -> bytes | None:
        if self._value_serializer is not None:
            value = self._value_serializer(topic, value)
        return value if value is None or value.__class__ is bytes else _bytes(value, "value")

    def intercepted(self, record: ProducerRecord, on_delivery: Callback | None) -> tuple[ProducerRecord, Callback]:
        """The record that the interceptors send, and a callback that passes the outcome to them first."""
        interceptors = self.interceptors

        def acknowledged(metadata: RecordMetadata, error: KgctlError | None) -> None:
            interceptors.on_acknowledgement(metadata, error)
            if on_delivery is not None:
                on_delivery(metadata, error)

        return interceptors.on_send(record), acknowledged

    def refused(self, record: ProducerRecord, error: KgctlError) -> None:
        """Pass the error of a record that no batch took to the interceptors."""
        partition = -1 if record.partition is None else record.partition
        self.interceptors.on_acknowledgement(RecordMetadata(record.topic, partition, -1, -1), error)

    # --- with the lock ---

    def attempt(
        self,
        topic: str,
        partition: int | None,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
        on_delivery: Callback | None,
        tag: tuple[int, int] | None,
        blocked: Blocked | None,
    ) -> Delivery | Blocked:
        """Take the record, or say what to wait for."""
        count = self._count_of(topic)
        if not count or (partition is not None and not 0 <= partition < count):
            return self._unknown(topic, partition, count, blocked)
        if partition is None and (key is not None or not self._is_by_key):
            if blocked is not None and blocked.partition is not None:
                partition = blocked.partition
            elif self._is_by_key:
                partition = partition_of_key(key, count)  # type: ignore[arg-type]
            else:
                partition = self._choose(topic, key, value, count)
        queues = self._topic(topic)
        batch = self.core.append(queues, partition, timestamp, key, value, headers)
        if batch is None:
            now_ms = self._now_ms()
            self.core.use(topic, now_ms)
            reservation = blocked.reservation if blocked is not None else None
            begun = self.core.begin(queues, partition, timestamp, key, value, headers, now_ms, reservation)
            if isinstance(begun, Reservation):
                return self._short_of_memory(begun, partition)
            batch = begun
            self._wake()
        elif blocked is not None:
            self.give_up(blocked)
        delivery = self._make(batch, batch.count - 1, timestamp)
        if on_delivery is not None:
            batch.notify(delivery, _Notice(on_delivery))
        if tag is not None:
            _tag(batch, tag)
        return delivery

    def attempt_again(
        self,
        topic: str,
        partition: int | None,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
        on_delivery: Callback | None,
        tag: tuple[int, int] | None,
        blocked: Blocked,
    ) -> Delivery | Blocked:
        """After a wait. A record that is refused now, as its transaction has failed meanwhile, keeps no memory."""
        try:
            return self.attempt(topic, partition, timestamp, key, value, headers, on_delivery, tag, blocked)
        except BaseException:
            self.give_up(blocked)
            raise

    def give_up(self, blocked: Blocked) -> None:
        """Give back the memory that a record waits for or does not need."""
        if blocked.reservation is not None:
            self.core.buffer.cancel(blocked.reservation)

    def _choose(self, topic: str, key: bytes | None, value: bytes | None, count: int) -> int | None:
        chosen = self._partitioner(topic, key, value, Partitions(count, self.core.available(topic)))
        if chosen is not None and not 0 <= chosen < count:
            raise UnusablePartitioner(
                f"the partitioner chose partition {chosen} of topic {topic!r}, which has {count}, numbered from 0"
            )
        return chosen

    def _unknown(self, topic: str, partition: int | None, count: int | None, blocked: Blocked | None) -> Blocked:
        core, now_ms = self.core, self._now_ms()
        if core.accumulator.is_closed:
            raise ProducerClosed("the producer is closed")
        check_topic(topic)
        known = core.use(topic, now_ms)
        if partition is not None and partition < 0:
            raise BadValue(f"topic {topic!r}: {partition} is not a partition")
        metadata = core.metadata
        version = metadata.version
        # Partitions may have been added to a known topic.
        number = metadata.request_update() if known else None
        self._wake()

        def is_known() -> bool:
            is_newer = metadata.version > version if number is None else metadata.answered >= number
            return is_newer or core.accumulator.is_closed or metadata.error is not None

        def expired(seconds: float) -> KgctlError:
            if known and partition is not None:
                error = missing_partition(topic, partition, known)
                return NotFound(f"{error}; none was added within {seconds:g} s (max.block.ms)")
            return core.no_metadata(topic, seconds)

        if metadata.error is not None:
            metadata.take_error()
        return Blocked(is_known, expired, blocked.reservation if blocked is not None else None)

    def _short_of_memory(self, reservation: Reservation, partition: int | None) -> Blocked:
        if reservation.is_closed:
            raise ProducerClosed("the producer is closed")
        total = self.core.buffer.total_bytes
        self._wake()

        def expired(seconds: float) -> KgctlError:
            return BufferFull(
                f"no room within {seconds:g} s (max.block.ms): the buffer of {total} bytes (buffer.memory) is full"
            )

        return Blocked(lambda: reservation.is_settled, expired, reservation, partition)


class _Notice:
    """Calls the callback of a record with what it wants to know."""

    __slots__ = ("_callback",)

    def __init__(self, callback: Callback) -> None:
        self._callback = callback

    def __call__(self, delivery: Delivery) -> None:
        self._callback(delivery.metadata(), delivery.error())


def _tag(batch: Batch, tag: tuple[int, int]) -> None:
    if batch.tags is None:
        batch.tags = []
    batch.tags.append(tag)


def _bytes(content: Any, what: str) -> bytes:
    if isinstance(content, str):
        return content.encode()
    if isinstance(content, bytes | bytearray | memoryview):
        return bytes(content)
    raise BadValue(
        f"a {what} must be bytes, text or None, not {type(content).__name__}: pass {what}_serializer, or encode it"
    )


def checked_headers(headers: Sequence[tuple[str, bytes | None]]) -> Headers:
    """Headers as they are sent. Raises BadValue."""
    out = []
    for name, content in headers:
        if not isinstance(name, str):
            raise BadValue(f"the name of a header must be text, not {type(name).__name__}")
        out.append((name, content if content is None or content.__class__ is bytes else _bytes(content, "header")))
    return tuple(out)


def check_topic(topic: str) -> None:
    """Raise BadValue for what a request cannot name: its other topics would not be answered."""
    if not isinstance(topic, str):
        raise BadValue(f"a topic is text, not {type(topic).__name__}")
    if not topic:
        raise BadValue("the name of a topic is empty")
    if len(topic.encode()) > _MOST_NAME_BYTES:
        raise BadValue(f"the name of a topic has {len(topic)} characters: no request can carry it")


def timestamp_of(timestamp_ms: int | None) -> int:
    """The given time or now, in milliseconds since 1970. Raises BadValue."""
    if timestamp_ms is None:
        return time.time_ns() // 1_000_000
    if not isinstance(timestamp_ms, int) or not 0 <= timestamp_ms < 1 << 63:
        raise BadValue(f"{timestamp_ms!r} is not a timestamp in milliseconds")
    return timestamp_ms
