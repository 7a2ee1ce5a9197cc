"""The consumer for asyncio: the same parts, run by the loop of the application."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from kgctl.client.config.configuration import from_keywords, from_properties
from kgctl.client.consumer.arguments import partition_of, subscribed, timestamps_of
from kgctl.client.consumer.consumer_record import ConsumerRecord
from kgctl.client.consumer.deserializers import Deserializer
from kgctl.client.consumer.face import ConsumerFace, Offsets
from kgctl.client.consumer.fetched import Fetched
from kgctl.client.consumer.fetching.offset_lookup import OffsetAndTimestamp
from kgctl.client.consumer.group.calls import CommitCallback
from kgctl.client.consumer.interceptors import ConsumerInterceptor
from kgctl.client.consumer.offset_and_metadata import OffsetAndMetadata
from kgctl.client.consumer.operations import Operation, Wait
from kgctl.client.consumer.ownership import Ownership, current_task
from kgctl.client.consumer.rebalance_listener import RebalanceListener
from kgctl.client.consumer.reset_strategy import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from kgctl.client.consumer.settings import ConsumerSettings, settings_of
from kgctl.client.consumer.subscription_pattern import SubscriptionPattern
from kgctl.client.engine.engine import Engine, now_ms
from kgctl.client.net.connector import ConnectionSettings
from kgctl.client.net.errors import BadValue
from kgctl.model.described_partition import PartitionInfo
from kgctl.model.topic_partition import TopicPartition

if TYPE_CHECKING:
    from typing import Unpack

    from kgctl.client.config.consumer import ConsumerOptions

T = TypeVar("T")


class AsyncConsumer(ConsumerFace):
    """`Consumer` with coroutines. Make it inside of the running loop; one task at a time uses it.

        async with AsyncConsumer(bootstrap_servers="localhost:9092", group_id="billing") as consumer:
            consumer.subscribe(["orders"])
            async for record in consumer:
                print(record.value)

    Methods of a listener and callbacks of commits may be coroutines.
    """

    def __init__(
        self,
        *,
        key_deserializer: Deserializer | None = None,
        value_deserializer: Deserializer | None = None,
        interceptors: Sequence[ConsumerInterceptor] = (),
        **options: Unpack[ConsumerOptions],
    ) -> None:
        read = from_keywords("consumer", options)
        settings = settings_of(read, key_deserializer, value_deserializer, interceptors)
        super().__init__(read.connection(), settings, Engine.in_loop, Ownership(current_task))

    @classmethod
    def from_properties(
        cls,
        properties: Mapping[str, Any],
        *,
        key_deserializer: Deserializer | None = None,
        value_deserializer: Deserializer | None = None,
        interceptors: Sequence[ConsumerInterceptor] = (),
    ) -> AsyncConsumer:
        """A consumer with options by their names in Kafka, such as those of a client.properties file."""
        read = from_properties("consumer", properties)
        return cls.connect(read.connection(), settings_of(read, key_deserializer, value_deserializer, interceptors))

    @classmethod
    def connect(cls, connection: ConnectionSettings, settings: ConsumerSettings) -> AsyncConsumer:
        """For kgctl itself."""
        made = cls.__new__(cls)
        ConsumerFace.__init__(made, connection, settings, Engine.in_loop, Ownership(current_task))
        return made

    async def __aenter__(self) -> AsyncConsumer:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # --- what is read ---

    def subscribe(
        self,
        topics: Iterable[str] = (),
        *,
        pattern: str | re.Pattern[str] | SubscriptionPattern | None = None,
        listener: RebalanceListener | None = None,
    ) -> None:
        """Read topics, or all topics that a pattern matches as a whole, and share them with the group."""
        names = subscribed(topics, pattern)
        if not names and pattern is None:
            raise BadValue("there are no topics to subscribe to; call unsubscribe to read nothing")
        self._return_unread()
        self._subscribe(names, pattern, listener)

    async def unsubscribe(self) -> None:
        """Give up all partitions, and leave the group."""
        self._return_unread()
        await self._run(lambda now: self._core.unsubscribe(now))

    # --- records ---

    async def poll(self, timeout: float = 1.0) -> list[ConsumerRecord]:
        """Records as soon as there are some, at most max.poll.records; [] after `timeout` seconds."""
        with self._owned:
            if self._unread:
                rest, self._unread = self._unread[::-1], []
                return rest
            deadline = self._until(timeout)
            found = self._at_once()
            if not found:
                found = await self._run(lambda now: self._core.poll(self._collect, now, deadline))
            return self._deliver(list(found))

    async def poll_batches(self, timeout: float = 1.0) -> list[Fetched]:
        """As `poll`, but everything that has arrived, as batches that are not decoded and not checked yet."""
        deadline = self._until(timeout)
        return list(await self._run(lambda now: self._core.poll(self._core.fetches.collect_raw, now, deadline)))

    def __aiter__(self) -> AsyncIterator[ConsumerRecord]:
        """Records without end. Commits during the iteration are of the records that it has returned."""
        return self

    async def __anext__(self) -> ConsumerRecord:
        while not self._unread:
            self._unread = (await self.poll(1.0))[::-1]
        return self._unread.pop()

    # --- positions ---

    async def position(self, partition: TopicPartition, timeout: float | None = None) -> int:
        """The offset of the next record that `poll` or the iteration returns."""
        if (unread := self._unread_offset(partition)) is not None:
            return unread
        deadline = self._until(timeout)
        return await self._run(lambda now: self._core.position(partition, now, deadline))

    async def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int], timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record of each partition at or after a time, in ms since 1970; None if there is none."""
        wanted = timestamps_of(timestamps)
        deadline = self._until(timeout)
        return await self._run(lambda now: self._core.look_up(wanted, now, deadline))

    async def beginning_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """The offset of the first record of each partition."""
        return await self._ends(partitions, EARLIEST_TIMESTAMP, timeout)

    async def end_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """The offset behind the last record; with read_committed, the last stable offset."""
        return await self._ends(partitions, LATEST_TIMESTAMP, timeout)

    # --- commits ---

    async def commit(self, offsets: Offsets | None = None, timeout: float | None = None) -> None:
        """Commit offsets, or the positions, and wait for it. Raises CommitFailed if the group no longer takes them."""
        deadline = self._until(timeout)
        await self._run(lambda now: self._core.commit(self._to_commit(offsets), now, deadline))

    async def commit_async(self, offsets: Offsets | None = None, callback: CommitCallback | None = None) -> None:
        """Commit without waiting for the answer and without retries. The callback runs in a later poll, commit or close."""
        await self._run(lambda now: self._core.commit_async(self._to_commit(offsets), callback, now))

    async def committed(
        self, partitions: Collection[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """The committed offsets of the group."""
        deadline = self._until(timeout)
        return await self._run(lambda now: self._core.committed(list(partitions), now, deadline))

    # --- the cluster ---

    async def partitions_for(self, topic: str, timeout: float | None = None) -> list[PartitionInfo]:
        """The partitions of a topic. Raises NotFound."""
        deadline = self._until(timeout)
        return self._infos_of(topic, await self._run(lambda now: self._core.describe([topic], now, deadline)))

    async def list_topics(self, timeout: float | None = None) -> dict[str, list[PartitionInfo]]:
        """All topics that this client may describe."""
        deadline = self._until(timeout)
        return self._infos(await self._run(lambda now: self._core.describe(None, now, deadline)))

    # --- the end ---

    async def close(self, timeout: float = 30.0) -> None:
        """Commit automatically, give up the partitions, leave the group and close the connections, within `timeout` seconds."""
        if self._engine.is_foreign:
            return
        with self._owned:
            if self._core.is_closed:
                return
            self._return_unread()
            deadline = self._until(timeout)
            try:
                await self._drive(lambda now: self._core.close(now, deadline))
            finally:
                self._core.is_closed = True
                self._engine.close()
                self._interceptors.close()

    # --- parts ---

    async def _ends(
        self, partitions: Iterable[TopicPartition], timestamp: int, timeout: float | None
    ) -> dict[TopicPartition, int]:
        deadline = self._until(timeout)
        asked = dict.fromkeys(map(partition_of, partitions), timestamp)
        found = await self._run(lambda now: self._core.look_up(asked, now, deadline))
        return {one: offset.offset for one, offset in found.items() if offset is not None}

    async def _run(self, begin: Callable[[int], Operation[T]]) -> T:
        with self._owned:
            self._check_open()
            return await self._drive(begin)

    async def _drive(self, begin: Callable[[int], Operation[T]]) -> T:
        """Carry out the steps of an operation."""
        engine, lock = self._engine, self._engine.lock
        with lock:
            operation = begin(now_ms())
        try:
            with lock:
                step = next(operation)
            while True:
                if isinstance(step, Wait):
                    until = step.until_ms
                    await engine.wait_async(step.condition, None if until is None else max(0, until - now_ms()) / 1000)
                else:
                    await step.run_async()
                with lock:
                    step = operation.send(now_ms())
        except StopIteration as stop:
            result: T = stop.value
            return result
        finally:
            with lock:
                operation.close()
            engine.wake()
