"""A client that is dropped without `close`: a warning names it, its thread ends, and its records are sent."""

from __future__ import annotations

import asyncio
import gc
import threading
import warnings
from collections.abc import Collection, Iterator
from typing import Any

import pytest

from broker.local import LocalBroker
from kgctl import Admin, AsyncAdmin, AsyncConsumer, AsyncProducer, Consumer, Producer, RebalanceListener, TopicPartition
from tests.harness.clusters import fresh


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with LocalBroker() as broker:
        yield broker.bootstrap_servers


def dropped(client: list[Any]) -> str:
    """The warning about the client, which nothing else refers to."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        client.clear()
        gc.collect()
    (message,) = [str(one.message) for one in caught if "client.id" in str(one.message)]
    return message


@pytest.mark.parametrize("kind", [Producer, Consumer])
def test_a_dropped_client_warns_and_ends_its_thread(address: str, kind: type[Producer] | type[Consumer]) -> None:
    before = set(threading.enumerate())
    client = [kind(bootstrap_servers=address, client_id="billing")]
    (thread,) = [one for one in set(threading.enumerate()) - before if one.name == "kgctl-client"]
    assert dropped(client) == (
        f"unclosed {kind.__name__} with client.id 'billing'; close it, or use it in a with statement"
    )
    thread.join(30)
    assert not thread.is_alive()


class ListenerOf(RebalanceListener):
    """Seeks, as listeners do that keep their offsets elsewhere."""

    def __init__(self, consumer: Consumer | AsyncConsumer) -> None:
        self.consumer, self.calls = consumer, list[str]()

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        self.calls.append("assigned")
        self.consumer.seek_to_beginning(partitions)


def test_a_consumer_whose_listener_refers_to_it_is_dropped_like_any_other(address: str) -> None:
    topic = fresh("dropped")
    with Producer(bootstrap_servers=address) as producer:
        producer.send(topic, b"value").result(30)
    before = set(threading.enumerate())
    consumer = [Consumer(bootstrap_servers=address, group_id=topic, client_id="billing")]
    (thread,) = [one for one in set(threading.enumerate()) - before if one.name == "kgctl-client"]
    listener = ListenerOf(consumer[0])
    calls = listener.calls
    consumer[0].subscribe([topic], listener=listener)
    del listener
    assert [record.value for record in consumer[0].poll(30)] == [b"value"]
    assert calls == ["assigned"]
    assert dropped(consumer).startswith("unclosed Consumer with client.id 'billing'")
    thread.join(30)
    assert not thread.is_alive()


def test_a_dropped_producer_sends_its_records_first(address: str) -> None:
    topic = fresh("dropped")
    before = set(threading.enumerate())
    producer = [Producer(bootstrap_servers=address, linger_ms=60_000)]
    (thread,) = [one for one in set(threading.enumerate()) - before if one.name == "kgctl-client"]
    delivery = producer[0].send(topic, b"value", partition=0)
    dropped(producer)
    assert delivery.result(30).offset == 0
    thread.join(30)
    assert not thread.is_alive()


def test_a_dropped_admin_warns(address: str) -> None:
    admin = [Admin(address, client_id="billing")]
    admin[0].list_topics()
    assert dropped(admin).startswith("unclosed Admin with client.id 'billing'")


def test_dropped_clients_of_a_loop_warn_and_end(address: str) -> None:
    topic = fresh("dropped")

    async def run() -> None:
        producer = [AsyncProducer(bootstrap_servers=address, client_id="billing", linger_ms=60_000)]
        delivery = await producer[0].send(topic, b"value", partition=0)
        assert dropped(producer).startswith("unclosed AsyncProducer with client.id 'billing'")
        assert (await asyncio.wait_for(delivery, 30)).offset == 0
        consumer = [AsyncConsumer(bootstrap_servers=address, client_id="billing")]
        consumer[0].assign([(topic, 0)])
        assert dropped(consumer).startswith("unclosed AsyncConsumer with client.id 'billing'")
        admin = [AsyncAdmin(address, client_id="billing")]
        await admin[0].list_topics()
        assert dropped(admin).startswith("unclosed AsyncAdmin with client.id 'billing'")
        loop = asyncio.get_running_loop()
        # Neither a connection is left, nor one that is still being opened.
        while len(loop._selector.get_map()) > 1 or len(asyncio.all_tasks()) > 1:  # type: ignore[attr-defined]
            await asyncio.sleep(0.01)
        gc.collect()

    asyncio.run(run())


def test_a_closed_client_does_not_warn(address: str, recwarn: pytest.WarningsRecorder) -> None:
    for kind in (Producer, Consumer):
        with kind(bootstrap_servers=address):
            pass
    with Admin(address) as admin:
        admin.list_topics()
    del admin
    gc.collect()
    assert [one for one in recwarn if one.category is ResourceWarning] == []
