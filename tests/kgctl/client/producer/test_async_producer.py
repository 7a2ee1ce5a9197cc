"""The producer for asyncio on running clusters."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from kgctl.client.net.errors import KgctlError, TimedOut
from kgctl.client.producer.async_producer import AsyncProducer
from kgctl.client.producer.core.batch import RecordMetadata
from kgctl.client.producer.core.errors import ProducerClosed, TransactionAbortable
from kgctl.client.producer.interceptors import ProducerInterceptor, ProducerRecord
from tests.harness.clusters import Cluster
from tests.harness.streaming import records_of
from tests.kgctl.client.producer.test_producer import committed, made


def in_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[[Cluster], None]:
    def run(cluster: Cluster) -> None:
        asyncio.run(asyncio.wait_for(test(cluster), 100))

    run.__name__ = test.__name__
    return run


@in_loop
async def test_records_are_written_and_each_delivery_can_be_awaited(cluster: Cluster) -> None:
    topic = made(cluster)
    async with AsyncProducer(bootstrap_servers=cluster.bootstrap_servers) as producer:
        sent = [await producer.send(topic, b"%d" % number) for number in range(300)]
        places = await asyncio.gather(*sent)
        assert [place.offset for place in places] == list(range(300))
        assert (await sent[7]).offset == 7
        assert [info.partition for info in await producer.partitions_for(topic)] == [0]
    assert [one.value() for one in records_of(cluster.bootstrap_servers, topic, 0, 2)] == [b"0", b"1"]


@in_loop
async def test_transactions_commit_and_abort(cluster: Cluster) -> None:
    topic = made(cluster, 1, **{"max.message.bytes": "1000"})
    async with AsyncProducer(bootstrap_servers=cluster.bootstrap_servers, transactional_id=topic) as producer:
        await producer.init_transactions()
        producer.begin_transaction()
        failed = await producer.send(topic, b"x" * 5000)
        with pytest.raises(TransactionAbortable):
            await producer.commit_transaction()
        with pytest.raises(KgctlError, match="MESSAGE_TOO_LARGE"):
            await failed
        await producer.abort_transaction()
        producer.begin_transaction()
        await producer.send(topic, b"good")
        await producer.send_offsets_to_transaction({}, "group")
        await producer.commit_transaction()
    assert await asyncio.to_thread(committed, cluster, topic) == [b"good"]


@in_loop
async def test_a_small_buffer_waits_and_interceptors_see_all(cluster: Cluster) -> None:
    topic = made(cluster)
    seen: list[int] = []

    class Recorder(ProducerInterceptor):
        def on_send(self, record: ProducerRecord) -> ProducerRecord:
            return record._replace(headers=[("seen", b"1")])

        def on_acknowledgement(self, metadata: RecordMetadata, error: KgctlError | None) -> None:
            seen.append(metadata.offset)

    options: dict[str, Any] = {"buffer_memory": 50_000, "interceptors": [Recorder()]}
    async with AsyncProducer(bootstrap_servers=cluster.bootstrap_servers, **options) as producer:

        async def write(number: int) -> None:
            for _ in range(50):
                await producer.send(topic, b"%d" % number + b"x" * 1000)

        await asyncio.gather(*(write(number) for number in range(4)))
        await producer.flush(60)
    assert seen == list(range(200))
    assert records_of(cluster.bootstrap_servers, topic, 0, 1)[0].headers() == [("seen", b"1")]


def test_a_wait_ends_with_its_timeout_and_a_closed_producer_refuses() -> None:
    async def run() -> None:
        producer = AsyncProducer(bootstrap_servers="127.0.0.1:1", max_block_ms=100)
        with pytest.raises(TimedOut):
            await producer.send("t", b"a")
        task = asyncio.create_task(producer.partitions_for("t", 60))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await producer.close()
        await producer.close()
        with pytest.raises(ProducerClosed):
            await producer.send("t", b"a")

    asyncio.run(run())
