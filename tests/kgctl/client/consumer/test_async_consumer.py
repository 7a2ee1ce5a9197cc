"""The asyncio consumer on running clusters: what differs from the blocking one."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any

import pytest

from kgctl.client.consumer.async_consumer import AsyncConsumer
from kgctl.client.consumer.consumer_record import ConsumerRecord
from kgctl.client.consumer.errors import ConcurrentUse, ConsumerClosed, WakeupError
from kgctl.client.consumer.offset_and_metadata import OffsetAndMetadata
from kgctl.client.consumer.rebalance_listener import RebalanceListener
from kgctl.client.net.errors import BadValue
from kgctl.model.topic_partition import TopicPartition
from tests.harness.clusters import Cluster, fresh
from tests.kgctl.client.consumer.conftest import Write
from tests.kgctl.client.consumer.test_consumer import SECONDS, numbers


def consumer_of(cluster: Cluster, **options: Any) -> AsyncConsumer:
    servers = cluster.bootstrap_servers
    return AsyncConsumer(
        **{"bootstrap_servers": servers, "auto_offset_reset": "earliest", "fetch_max_wait_ms": 50} | options
    )


async def read(consumer: AsyncConsumer, count: int) -> list[ConsumerRecord]:
    out: list[ConsumerRecord] = []
    async with asyncio.timeout(SECONDS):
        while len(out) < count:
            out += await consumer.poll(1.0)
    return out


def test_a_member_reads_commits_and_continues(cluster: Cluster, write: Write) -> None:
    topic, group = write(numbers(10)), fresh("group")
    partition = TopicPartition(topic, 0)
    heard = []

    class Listener(RebalanceListener):
        async def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:  # type: ignore[override]
            await asyncio.sleep(0)
            heard.append(set(partitions))

    async def main() -> None:
        async with consumer_of(cluster, group_id=group, enable_auto_commit=False) as consumer:
            consumer.subscribe([topic], listener=Listener())
            async for record in consumer:
                if record.offset == 5:
                    break
            await consumer.commit()
            assert await consumer.committed([partition]) == {partition: OffsetAndMetadata(6)}
            assert await consumer.position(partition) == 6
            await consumer.commit_async({partition: 7}, lambda offsets, error: heard.append(error))
            await consumer.commit()
            assert heard == [{partition}, None]
            assert [one.offset for one in await consumer.poll()] == [6, 7, 8, 9]
            await consumer.unsubscribe()
            assert consumer.assignment() == frozenset()

    asyncio.run(main())


def test_offsets_are_looked_up(cluster: Cluster, write: Write) -> None:
    topic = write(numbers(10))
    partition = TopicPartition(topic, 0)

    async def main() -> None:
        async with consumer_of(cluster) as consumer:
            consumer.assign([partition])
            assert (await read(consumer, 1))[0].value == b"0"
            assert await consumer.beginning_offsets([partition]) == {partition: 0}
            assert await consumer.end_offsets([partition]) == {partition: 10}
            found = (await consumer.offsets_for_times({partition: 0}))[partition]
            assert found is not None
            assert found.offset == 0
            assert [one.partition for one in await consumer.partitions_for(topic)] == [0]
            assert topic in await consumer.list_topics()
            consumer.seek(partition, 9)
            (fetched,) = await consumer.poll_batches(SECONDS)
            assert [record.offset for one in fetched.batches() for record in one.records] == [9]

    asyncio.run(main())


def test_a_cancelled_poll_leaves_the_consumer_usable(our_cluster: Cluster) -> None:
    async def main() -> None:
        async with consumer_of(our_cluster) as consumer:
            consumer.assign([(fresh("missing"), 0)])
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await consumer.poll(SECONDS)
            assert await consumer.poll(0.01) == []

    asyncio.run(main())


def test_a_poll_that_is_cancelled_in_its_listener_does_not_stop_the_rebalance(cluster: Cluster, write: Write) -> None:
    topic = write(numbers(3))
    is_called = asyncio.Event()

    class Slow(RebalanceListener):
        async def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:  # type: ignore[override]
            is_called.set()
            await asyncio.Event().wait()

    async def main() -> None:
        async with consumer_of(cluster, group_id=fresh("group")) as consumer:
            consumer.subscribe([topic], listener=Slow())
            polling = asyncio.create_task(consumer.poll(SECONDS))
            await is_called.wait()
            polling.cancel()
            with pytest.raises(asyncio.CancelledError):
                await polling
            assert len(await read(consumer, 3)) == 3

    asyncio.run(main())


def test_a_second_task_is_refused_by_name(our_cluster: Cluster) -> None:
    async def main() -> None:
        async with consumer_of(our_cluster) as consumer:
            consumer.assign([("t", 0)])
            reading = asyncio.create_task(consumer.poll(SECONDS), name="reader-7")
            await asyncio.sleep(0)
            with pytest.raises(ConcurrentUse, match="'reader-7' uses it"):
                await consumer.poll(0)
            consumer.wakeup()
            with pytest.raises(WakeupError):
                await reading

    asyncio.run(main())


def test_a_closed_consumer_says_so(our_cluster: Cluster) -> None:
    async def main() -> None:
        consumer = consumer_of(our_cluster)
        with pytest.raises(BadValue):
            consumer.subscribe([])
        await consumer.close()
        await consumer.close()
        with pytest.raises(ConsumerClosed):
            await consumer.poll(0)

    asyncio.run(main())
