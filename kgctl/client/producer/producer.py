"""The blocking producer: thread-safe methods over an engine with a thread of its own."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any

from kgctl.client.config.configuration import from_keywords, from_properties
from kgctl.client.engine.engine import Engine
from kgctl.client.net.connector import ConnectionSettings
from kgctl.client.net.errors import KgctlError, TimedOut
from kgctl.client.net.lifetime import WrongProcess, warn_unclosed, watch
from kgctl.client.producer.core.batch import Batch, Callback, Delivery
from kgctl.client.producer.core.coordination import Outcome
from kgctl.client.producer.core.transactions import Transactions
from kgctl.client.producer.interceptors import ProducerInterceptor, ProducerRecord
from kgctl.client.producer.options import plugins_of, settings_of
from kgctl.client.producer.partitioners import Partitioner
from kgctl.client.producer.record_path import Blocked, Serializer, checked_headers, timestamp_of
from kgctl.client.producer.records import ArchivedRecord, OutgoingRecord
from kgctl.client.producer.shared_face import (
    Plugins,
    ProducerFace,
    ProducerSettings,
    expired,
    seconds_of,
)

if TYPE_CHECKING:
    from typing import Unpack

    from kgctl.client.config.producer import ProducerOptions
    from kgctl.client.consumer.group_metadata import ConsumerGroupMetadata
    from kgctl.client.consumer.offset_and_metadata import OffsetAndMetadata
    from kgctl.model.described_partition import PartitionInfo
    from kgctl.model.topic_partition import TopicPartition


class Producer:
    """Writes records to any number of topics. Threads may share it.

        with Producer(bootstrap_servers="localhost:9092", linger_ms=20) as producer:
            delivery = producer.send("orders", b"value", b"key")
            print(delivery.result().offset)

    Options are Kafka's, with underscores for dots; their defaults are Kafka's, too: acks=all, idempotent. Timeouts of methods
    are in seconds. `key_serializer(topic, key)` and `value_serializer(topic, value)` return bytes or None. `partitioner` is a
    name (`default`, `sticky`, `round-robin`, `module:name`) or a function; see `kgctl.client.producer.partitioners`.
    """

    def __init__(
        self,
        *,
        key_serializer: Serializer | None = None,
        value_serializer: Serializer | None = None,
        partitioner: Partitioner | str | None = None,
        interceptors: Sequence[ProducerInterceptor] = (),
        **options: Unpack[ProducerOptions],
    ) -> None:
        read = from_keywords("producer", options)
        plugins = plugins_of(
            read,
            key_serializer=key_serializer,
            value_serializer=value_serializer,
            partitioner=partitioner,
            interceptors=tuple(interceptors),
        )
        self._begin(read.connection(), settings_of(read), plugins)

    @classmethod
    def from_properties(
        cls,
        properties: Mapping[str, Any],
        *,
        key_serializer: Serializer | None = None,
        value_serializer: Serializer | None = None,
        partitioner: Partitioner | str | None = None,
        interceptors: Sequence[ProducerInterceptor] = (),
    ) -> Producer:
        """A producer with options by their names in Kafka, such as those of a client.properties file."""
        read = from_properties("producer", properties)
        plugins = plugins_of(
            read,
            key_serializer=key_serializer,
            value_serializer=value_serializer,
            partitioner=partitioner,
            interceptors=tuple(interceptors),
        )
        return cls.connect(read.connection(), settings_of(read), plugins)

    @classmethod
    def connect(
        cls,
        connection: ConnectionSettings,
        settings: ProducerSettings,
        plugins: Plugins,
        settled: Callable[[Batch], None] | None = None,
        waits: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext,
    ) -> Producer:
        """For kgctl itself. `settled` hears, under the client's lock, of each batch that was acknowledged or failed.

        `send` waits within `waits()`.
        """
        made = cls.__new__(cls)
        made._begin(connection, settings, plugins, settled, waits)
        return made

    def _begin(
        self,
        connection: ConnectionSettings,
        settings: ProducerSettings,
        plugins: Plugins,
        settled: Callable[[Batch], None] | None = None,
        waits: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext,
    ) -> None:
        self._waits = waits
        self._face = ProducerFace(connection, settings, Engine.in_thread, Delivery, plugins, settled)
        self._engine, self._path = self._face.engine, self._face.path
        self._lock, self._attempt = self._engine.lock, self._path.attempt
        self._key_bytes, self._value_bytes = self._path.key_bytes, self._path.value_bytes
        self._has_interceptors = bool(self._face.interceptors)
        self._engine.start()
        watch(self, Producer._forked)

    def __del__(self) -> None:
        engine = getattr(self, "_engine", None)
        if engine is not None and engine.is_open:
            warn_unclosed(self, engine.network.settings.client_id)
            engine.abandon(self._face.begin_close)

    def _forked(self, error: WrongProcess) -> None:
        """This is a copy in a forked process."""
        self._lock = self._engine.forked(error)  # type: ignore[assignment]

    def __enter__(self) -> Producer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- records ---

    def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        *,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Sequence[tuple[str, bytes | None]] = (),
        on_delivery: Callback | None = None,
    ) -> Delivery:
        """Put a record into a batch, which is sent in the background, and return its future.

        Waits, at most max.block.ms, for the metadata of the topic and for room in the buffer. Then `on_delivery(metadata,
        error)` is called in the thread of the client, in the order of each partition; it must not block. Raises TimedOut,
        BufferFull, RecordTooLarge, or why the topic cannot be written to; errors of the broker are in the future.
        """
        if self._has_interceptors:
            record = ProducerRecord(topic, value, key, partition, timestamp_ms, headers)
            return self._send_intercepted(record, on_delivery)
        return self._send(topic, value, key, partition, timestamp_ms, headers, on_delivery)

    def _send(
        self,
        topic: str,
        value: Any,
        key: Any,
        partition: int | None,
        timestamp_ms: int | None,
        headers: Sequence[tuple[str, bytes | None]],
        on_delivery: Callback | None,
        tag: tuple[int, int] | None = None,
    ) -> Delivery:
        key_bytes, value_bytes = self._key_bytes(topic, key), self._value_bytes(topic, value)
        timestamp = timestamp_of(timestamp_ms)
        checked = checked_headers(headers) if headers else ()
        with self._lock:
            taken = self._attempt(topic, partition, timestamp, key_bytes, value_bytes, checked, on_delivery, tag, None)
        if isinstance(taken, Blocked):
            taken = self._once_unblocked(
                taken, topic, partition, timestamp, key_bytes, value_bytes, checked, on_delivery, tag
            )
        return taken

    def _once_unblocked(self, blocked: Blocked, *record: Any) -> Delivery:
        """Wait until the record can be taken; `record` is what `RecordPath.attempt` takes."""
        deadline = time.monotonic() + self._face.max_block_seconds
        while True:
            self._wait_for_room(blocked, deadline)
            with self._lock:
                taken = self._path.attempt_again(*record, blocked)  # type: ignore[call-arg]
            if not isinstance(taken, Blocked):
                return taken
            blocked = taken

    def send_counted(self, topic: str, record: OutgoingRecord) -> None:
        """For kgctl itself: the batch knows the number and the payload of the record."""
        tag = (record.number, len(record.key or b"") + len(record.value or b""))
        self._send(topic, record.value, record.key, record.partition, record.timestamp_ms, record.headers, None, tag)

    def send_archived(self, topic: str, partition: int | None, records: Iterable[ArchivedRecord]) -> None:
        """For kgctl itself: records as they were read from a log, of which -1 as the timestamp says that there is none."""
        left, attempt = iter(records), self._attempt
        while True:
            with self._lock:
                for time_ms, key, value, headers, number in left:
                    timestamp = -1 if time_ms == -1 else timestamp_of(time_ms)
                    tag = (number, len(key or b"") + len(value or b""))
                    taken = attempt(topic, partition, timestamp, key, value, headers, None, tag, None)
                    if taken.__class__ is Blocked:
                        break
                else:
                    return
            assert isinstance(taken, Blocked)
            self._once_unblocked(taken, topic, partition, timestamp, key, value, headers, None, tag)

    def failure_of_transaction(self) -> KgctlError | None:
        """For kgctl itself, with the lock: why the transaction cannot be committed."""
        transactions = self._face.core.transactions
        return None if transactions is None else transactions.failure

    def drop_unsent(self, reason: KgctlError) -> None:
        """For kgctl itself, with the lock: fail what was not sent."""
        self._face.core.sender.drop_unsent(reason)

    def _wait_for_room(self, blocked: Blocked, deadline: float) -> None:
        try:
            with self._waits():
                is_free = self._engine.wait(blocked.condition, max(0.0, deadline - time.monotonic()))
            if is_free:
                return
        except BaseException:
            with self._lock:
                self._path.give_up(blocked)
            raise
        raise expired(self._path, self._engine, blocked, self._face.max_block_seconds)

    def _send_intercepted(self, record: ProducerRecord, on_delivery: Callback | None) -> Delivery:
        record, noting = self._path.intercepted(record, on_delivery)
        try:
            return self._send(
                record.topic,
                record.value,
                record.key,
                record.partition,
                record.timestamp_ms,
                record.headers,
                noting,
            )
        except KgctlError as error:
            self._path.refused(record, error)
            raise

    def flush(self, timeout: float | None = None) -> None:
        """Send all records now, and wait until those are acknowledged or have failed that were sent before this call.

        Raises TimedOut after `timeout` seconds; errors of records are in their futures.
        """
        is_done = self._face.begin_flush()
        try:
            if not self._engine.wait(is_done, seconds_of(timeout)):
                raise TimedOut(f"flush: not all records are acknowledged within {timeout:g} s")
        finally:
            self._face.end_flush()

    def partitions_for(self, topic: str, timeout: float | None = None) -> list[PartitionInfo]:
        """The partitions of a topic, which the broker may create (auto.create.topics.enable)."""
        seconds = self._face.max_block_seconds if timeout is None else timeout
        if not self._engine.wait(self._face.begin_topic(topic), seconds):
            raise self._face.core.no_metadata(topic, seconds)
        return self._face.partitions_of(topic)

    def metrics(self) -> dict[str, float]:
        """Numbers by Kafka's names of producer-metrics: totals, averages of late, the state of the buffer."""
        with self._lock:
            return dict(self._face.core.metrics)

    # --- transactions ---

    def init_transactions(self, timeout: float | None = None) -> None:
        """Get a producer id for transactional.id. Fences older producers with it, and waits until their transaction has ended.

        Like the other methods of transactions it waits at most max.block.ms; after TimedOut, it may be called again.
        """
        self._call("init_transactions", Transactions.initialize, timeout)

    def begin_transaction(self) -> None:
        """The records that follow belong to one transaction."""
        self._face.begin_transaction()

    def send_offsets_to_transaction(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int],
        group: ConsumerGroupMetadata | str,
        timeout: float | None = None,
    ) -> None:
        """Commit offsets of a group with the transaction. Pass `consumer.group_metadata()`, so that older members are refused."""
        self._call("send_offsets_to_transaction", self._face.offsets_call(offsets, group), timeout)

    def commit_transaction(self, timeout: float | None = None) -> None:
        """Wait until all records are acknowledged, and commit them.

        Raises TransactionAbortable: abort it; ProducerFenced or another TransactionFailed: close the producer; OutcomeUnknown:
        commit again.
        """
        self._call("commit_transaction", Transactions.begin_commit, timeout, commits=True)

    def abort_transaction(self, timeout: float | None = None) -> None:
        """Drop the records that were not sent, and abort the transaction."""
        self._call("abort_transaction", Transactions.begin_abort, timeout)

    def _call(
        self,
        operation: str,
        start: Callable[[Transactions], Outcome],
        timeout: float | None,
        *,
        commits: bool = False,
    ) -> None:
        seconds = self._face.max_block_seconds if timeout is None else timeout
        outcome = self._face.begin_call(start)
        self._engine.wait(lambda: outcome.is_done, seconds)
        self._face.end_call(outcome, operation, seconds, commits=commits)

    # --- the end ---

    def close(self, timeout: float | None = None) -> None:
        """Send what is left, wait for it at most `timeout` seconds, abort an open transaction, and close all connections.

        What is not acknowledged then fails with ProducerClosed. May be called again, and from callbacks, where it does not wait.
        """
        face, engine = self._face, self._engine
        if engine.is_closed:
            return
        is_done = face.begin_close()
        try:
            if not engine.is_inside() and engine.failure is None:
                engine.wait(is_done, seconds_of(timeout))
        finally:
            face.force_close()
            engine.close()
            face.interceptors.close()
