"""The producer for asyncio: methods that await, over an engine in the running loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from kgctl.client.config.configuration import Configuration, from_keywords, from_properties
from kgctl.client.engine.engine import Engine
from kgctl.client.net.errors import KgctlError, TimedOut
from kgctl.client.net.lifetime import WrongProcess, warn_unclosed, watch
from kgctl.client.producer.core.batch import Callback, Delivery, RecordMetadata
from kgctl.client.producer.core.coordination import Outcome
from kgctl.client.producer.core.transactions import Transactions
from kgctl.client.producer.interceptors import ProducerInterceptor, ProducerRecord
from kgctl.client.producer.options import plugins_of, settings_of
from kgctl.client.producer.partitioners import Partitioner
from kgctl.client.producer.record_path import Blocked, Serializer, checked_headers, timestamp_of
from kgctl.client.producer.shared_face import ProducerFace, expired, seconds_of

if TYPE_CHECKING:
    from typing import Unpack

    from kgctl.client.config.producer import ProducerOptions
    from kgctl.client.consumer.group_metadata import ConsumerGroupMetadata
    from kgctl.client.consumer.offset_and_metadata import OffsetAndMetadata
    from kgctl.model.described_partition import PartitionInfo
    from kgctl.model.topic_partition import TopicPartition

_BATCHES_PER_YIELD = 8


class AsyncDelivery(Delivery):
    """The future of one record. Await it for the place of the record, or its error."""

    __slots__ = ()

    def __await__(self) -> Generator[Any, None, RecordMetadata]:
        if not self.done():
            waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self.add_done_callback(lambda _: _set(waiting))
            yield from waiting
        error = self.error()
        if error is not None:
            raise error.with_traceback(None)
        return self.metadata()

    def result(self, timeout: float | None = None) -> RecordMetadata:
        """The place of a record that is done; raises its error. Before that, await this object instead."""
        return super().result(0)


def _set(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)


class AsyncProducer:
    """Writes records to any number of topics, in one event loop.

        async with AsyncProducer(bootstrap_servers="localhost:9092") as producer:
            delivery = await producer.send("orders", b"value", b"key")
            print((await delivery).offset)

    Options and arguments are those of `Producer`. Callbacks and partitioners run in the loop.
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
        self._begin(
            from_keywords("producer", options), key_serializer, value_serializer, partitioner, tuple(interceptors)
        )

    @classmethod
    def from_properties(
        cls,
        properties: Mapping[str, Any],
        *,
        key_serializer: Serializer | None = None,
        value_serializer: Serializer | None = None,
        partitioner: Partitioner | str | None = None,
        interceptors: Sequence[ProducerInterceptor] = (),
    ) -> AsyncProducer:
        """A producer with options by their names in Kafka, such as those of a client.properties file."""
        made = cls.__new__(cls)
        read = from_properties("producer", properties)
        made._begin(read, key_serializer, value_serializer, partitioner, tuple(interceptors))
        return made

    def _begin(
        self,
        options: Configuration,
        key_serializer: Serializer | None,
        value_serializer: Serializer | None,
        partitioner: Partitioner | str | None,
        interceptors: tuple[ProducerInterceptor, ...],
    ) -> None:
        self._connection, self._settings = options.connection(), settings_of(options)
        self._plugins = plugins_of(
            options,
            key_serializer=key_serializer,
            value_serializer=value_serializer,
            partitioner=partitioner,
            interceptors=interceptors,
        )
        self._opened: ProducerFace | None = None
        self._begun = 0

    async def __aenter__(self) -> AsyncProducer:
        self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def start(self) -> None:
        """Begin in the running loop. The first method that needs it does the same."""
        self._face()

    def _face(self) -> ProducerFace:
        face = self._opened
        if face is None:
            face = self._opened = ProducerFace(
                self._connection, self._settings, Engine.in_loop, AsyncDelivery, self._plugins
            )
            face.engine.start()
            watch(self, AsyncProducer._forked)
        return face

    def __del__(self) -> None:
        face: ProducerFace | None = getattr(self, "_opened", None)
        if face is not None and face.engine.is_open:
            warn_unclosed(self, self._connection.client_id)
            face.engine.abandon(face.begin_close)

    def _forked(self, error: WrongProcess) -> None:
        """This is a copy in a forked process."""
        self._face().engine.forked(error)

    # --- records ---

    async def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        *,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Sequence[tuple[str, bytes | None]] = (),
        on_delivery: Callback | None = None,
    ) -> AsyncDelivery:
        """Put a record into a batch, and return its future, to be awaited for the acknowledgement, or not.

        Waits, at most max.block.ms, for the metadata of the topic and for room in the buffer. `on_delivery(metadata, error)` is
        called in the loop, in the order of each partition. Raises as `Producer.send` does.
        """
        face = self._opened or self._face()
        if face.interceptors:
            record = ProducerRecord(topic, value, key, partition, timestamp_ms, headers)
            record, noting = face.path.intercepted(record, on_delivery)
            try:
                return await self._send(face, *record, noting)
            except KgctlError as error:
                face.path.refused(record, error)
                raise
        return await self._send(face, topic, value, key, partition, timestamp_ms, headers, on_delivery)

    async def _send(
        self,
        face: ProducerFace,
        topic: str,
        value: Any,
        key: Any,
        partition: int | None,
        timestamp_ms: int | None,
        headers: Sequence[tuple[str, bytes | None]],
        on_delivery: Callback | None,
    ) -> AsyncDelivery:
        path = face.path
        key_bytes, value_bytes = path.key_bytes(topic, key), path.value_bytes(topic, value)
        timestamp = timestamp_of(timestamp_ms)
        checked = checked_headers(headers) if headers else ()
        with face.engine.lock:
            taken = path.attempt(topic, partition, timestamp, key_bytes, value_bytes, checked, on_delivery, None, None)
        if isinstance(taken, Blocked):
            deadline = time.monotonic() + face.max_block_seconds
            while isinstance(taken, Blocked):
                await self._wait_for_room(face, taken, deadline)
                with face.engine.lock:
                    taken = path.attempt_again(
                        topic, partition, timestamp, key_bytes, value_bytes, checked, on_delivery, None, taken
                    )
        elif taken.begins_batch:
            # A loop over `send` would otherwise keep the client from sending until the buffer is full.
            self._begun += 1
            if not self._begun % _BATCHES_PER_YIELD:
                await asyncio.sleep(0)
        return taken  # type: ignore[return-value]

    async def _wait_for_room(self, face: ProducerFace, blocked: Blocked, deadline: float) -> None:
        try:
            if await face.engine.wait_async(blocked.condition, max(0.0, deadline - time.monotonic())):
                return
        except BaseException:
            with face.engine.lock:
                face.path.give_up(blocked)
            raise
        raise expired(face.path, face.engine, blocked, face.max_block_seconds)

    async def flush(self, timeout: float | None = None) -> None:
        """Send all records now, and wait until those are acknowledged or have failed that were sent before this call."""
        face = self._face()
        is_done = face.begin_flush()
        try:
            if not await face.engine.wait_async(is_done, seconds_of(timeout)):
                raise TimedOut(f"flush: not all records are acknowledged within {timeout:g} s")
        finally:
            face.end_flush()

    async def partitions_for(self, topic: str, timeout: float | None = None) -> list[PartitionInfo]:
        """The partitions of a topic, which the broker may create (auto.create.topics.enable)."""
        face = self._face()
        seconds = face.max_block_seconds if timeout is None else timeout
        if not await face.engine.wait_async(face.begin_topic(topic), seconds):
            raise face.core.no_metadata(topic, seconds)
        return face.partitions_of(topic)

    def metrics(self) -> dict[str, float]:
        """Numbers by Kafka's names of producer-metrics."""
        face = self._face()
        with face.engine.lock:
            return dict(face.core.metrics)

    # --- transactions: as those of Producer ---

    async def init_transactions(self, timeout: float | None = None) -> None:
        await self._call("init_transactions", Transactions.initialize, timeout)

    def begin_transaction(self) -> None:
        self._face().begin_transaction()

    async def send_offsets_to_transaction(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int],
        group: ConsumerGroupMetadata | str,
        timeout: float | None = None,
    ) -> None:
        await self._call("send_offsets_to_transaction", self._face().offsets_call(offsets, group), timeout)

    async def commit_transaction(self, timeout: float | None = None) -> None:
        await self._call("commit_transaction", Transactions.begin_commit, timeout, commits=True)

    async def abort_transaction(self, timeout: float | None = None) -> None:
        await self._call("abort_transaction", Transactions.begin_abort, timeout)

    async def _call(
        self,
        operation: str,
        start: Callable[[Transactions], Outcome],
        timeout: float | None,
        *,
        commits: bool = False,
    ) -> None:
        face = self._face()
        seconds = face.max_block_seconds if timeout is None else timeout
        outcome = face.begin_call(start)
        await face.engine.wait_async(lambda: outcome.is_done, seconds)
        face.end_call(outcome, operation, seconds, commits=commits)

    # --- the end ---

    async def close(self, timeout: float | None = None) -> None:
        """Send what is left, wait for it at most `timeout` seconds, abort an open transaction, and close all connections."""
        face = self._opened
        if face is None or face.engine.is_closed:
            return
        is_done = face.begin_close()
        try:
            if face.engine.failure is None:
                await face.engine.wait_async(is_done, seconds_of(timeout))
        finally:
            face.force_close()
            face.engine.close()
            face.interceptors.close()
