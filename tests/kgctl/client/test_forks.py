"""A forked process that uses a client of its parent gets an error that says what to do, at once."""

from __future__ import annotations

import asyncio
import gc
import os
import select
import signal
import threading
import warnings
from collections.abc import Awaitable, Callable, Iterator

import pytest

from broker.local import LocalBroker
from kgctl import Admin, AsyncAdmin, AsyncConsumer, AsyncProducer, Consumer, Producer
from kgctl.client.net.errors import KgctlError
from tests.harness.clusters import fresh


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with LocalBroker() as broker:
        yield broker.bootstrap_servers


def in_child(action: Callable[[], object]) -> str:
    """What the action does in a forked process: the error that it raises, or "done"."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", DeprecationWarning
        )  # that forks of processes with threads are dangerous is the point
        child = os.fork()
    if not child:
        try:
            action()
            outcome = "done"
        except KgctlError as error:
            outcome = f"{error.name}: {error}"
        except BaseException as error:  # noqa: BLE001  (the parent shows it)
            outcome = repr(error)
        os.write(writer, outcome.encode())
        os._exit(0)
    os.close(writer)
    try:
        arrived, _, _ = select.select([reader], [], [], 20)
        return os.read(reader, 65536).decode() if arrived else "it hangs"
    finally:
        os.close(reader)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def wrong(name: str) -> str:
    return f"WRONG_PROCESS: this {name} belongs to process {os.getpid()}; create one after the fork"


def test_a_producer_of_the_parent_raises(address: str) -> None:
    topic = fresh("forked")
    with Producer(bootstrap_servers=address) as producer:
        first = producer.send(topic, b"before", partition=0)
        assert in_child(lambda: producer.send(topic, b"child", partition=0)) == wrong("Producer")
        assert in_child(producer.flush) == wrong("Producer")
        assert in_child(lambda: producer.partitions_for(topic)) == wrong("Producer")
        assert in_child(producer.metrics) == wrong("Producer")
        assert in_child(first.result) in (wrong("Producer"), "done")  # it may have been acknowledged before
        assert in_child(producer.close) == "done"
        assert producer.send(topic, b"after", partition=0).result(30).offset == first.result(30).offset + 1


def test_a_consumer_of_the_parent_raises(address: str) -> None:
    topic = fresh("forked")
    with Producer(bootstrap_servers=address) as producer, Consumer(bootstrap_servers=address, group_id="g") as consumer:
        producer.send(topic, b"value", partition=0).result(30)
        consumer.assign([(topic, 0)])
        consumer.seek_to_beginning()
        for action in (consumer.poll, consumer.assignment, consumer.commit, consumer.metrics, consumer.wakeup):
            assert in_child(action) == wrong("Consumer")
        assert in_child(lambda: consumer.assign([])) == wrong("Consumer")
        assert in_child(lambda: next(consumer)) == wrong("Consumer")
        assert in_child(consumer.close) == "done"
        assert [record.value for record in consumer.poll(30)] == [b"value"]


def test_an_admin_of_the_parent_raises(address: str) -> None:
    with Admin(address) as admin:
        admin.list_topics()
        assert in_child(admin.list_topics) == wrong("Admin")
        assert in_child(admin.close) == "done"
        admin.list_topics()


def test_clients_of_a_loop_of_the_parent_raise(address: str) -> None:
    topic = fresh("forked")

    def outcome(method: Callable[[], Awaitable[object]]) -> str:
        async def call() -> None:
            await method()

        def begin() -> None:
            asyncio.set_event_loop_policy(None)
            asyncio.run(call())

        return in_child(begin)

    async def run() -> None:
        async with (
            AsyncProducer(bootstrap_servers=address) as producer,
            AsyncConsumer(bootstrap_servers=address) as consumer,
            AsyncAdmin(address) as admin,
        ):
            await (await producer.send(topic, b"value", partition=0))
            consumer.assign([(topic, 0)])
            consumer.seek_to_beginning()
            await admin.list_topics()
            assert outcome(lambda: producer.send(topic, b"child", partition=0)) == wrong("AsyncProducer")
            assert outcome(producer.flush) == wrong("AsyncProducer")
            assert outcome(consumer.poll) == wrong("AsyncConsumer")
            assert outcome(admin.list_topics) == wrong("AsyncAdmin")
            for client in (producer, consumer, admin):
                assert outcome(client.close) == "done"
            assert [record.value for record in await consumer.poll(30)] == [b"value"]
            await admin.list_topics()

    asyncio.run(run())


def test_a_client_whose_lock_was_held_during_the_fork_raises(address: str) -> None:
    with Producer(bootstrap_servers=address) as producer, Consumer(bootstrap_servers=address) as consumer:
        consumer.assign([("t", 0)])
        held, over = threading.Event(), threading.Event()

        def hold() -> None:
            with producer._engine.lock, consumer._engine.lock, consumer._owned:
                held.set()
                over.wait(30)

        holder = threading.Thread(target=hold)
        holder.start()
        held.wait(30)
        try:
            assert in_child(producer.flush) == wrong("Producer")
            assert in_child(consumer.assignment) == wrong("Consumer")
        finally:
            over.set()
            holder.join()


def test_a_client_that_is_created_after_the_fork_works(address: str) -> None:
    topic = fresh("forked")
    with Producer(bootstrap_servers=address) as producer:
        producer.send(topic, b"parent", partition=0).result(30)

        def produce() -> None:
            with Producer(bootstrap_servers=address) as own:
                own.send(topic, b"child", partition=0).result(30)

        assert in_child(produce) == "done"


def test_a_forked_process_does_not_complain_about_clients_of_its_parent(address: str) -> None:
    clients: list[Producer | Consumer] = [Producer(bootstrap_servers=address), Consumer(bootstrap_servers=address)]

    def drop() -> None:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            clients.clear()
            gc.collect()
        assert [str(one.message) for one in caught if "client.id" in str(one.message)] == []

    try:
        assert in_child(drop) == "done"
    finally:
        for client in clients:
            client.close()
