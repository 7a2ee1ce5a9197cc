"""The clients of Python programs side by side: records of 1 KiB, one partition, acks=all, without compression."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import confluent_kafka as ck

from bench import streams
from bench.streams import LONGEST_WAIT_S, VALUE_BYTES, StreamFailed
from kgctl import Consumer, Producer, TopicPartition

LINGER_MS = 5
BATCH_BYTES = 262_144
Work = Callable[[str, str, int], None]


@dataclass(frozen=True)
class Rate:
    """`cpu_s` are the CPU seconds of this process per million records."""

    mb_s: float
    cpu_s: float


def rates(bootstrap: str, topic: str, records: int) -> Iterator[tuple[str, str, Rate]]:
    """Client, action and rate. All clients produce in turn, then all consume the same records; the order is random.

    A broker answers the first ones from colder caches, and the later ones while it still writes what the others sent.
    """
    for action, clients in (("produce", PRODUCERS), ("consume", CONSUMERS)):
        for name in random.sample(list(clients), len(clients)):
            work = clients[name]
            began, cpu = time.perf_counter(), time.process_time()
            work(bootstrap, topic, records)
            seconds, cpu_s = time.perf_counter() - began, time.process_time() - cpu
            yield name, action, Rate(records * VALUE_BYTES / seconds / 1e6, cpu_s * 1e6 / records)


def _kgctl_produce(bootstrap: str, topic: str, records: int) -> None:
    value = os.urandom(VALUE_BYTES)
    with Producer(bootstrap_servers=bootstrap, linger_ms=LINGER_MS, batch_size=BATCH_BYTES) as producer:
        for _ in range(records):
            last = producer.send(topic, value, partition=0)
        producer.flush(LONGEST_WAIT_S)
        last.result(0)


def _kgctl_consume(bootstrap: str, topic: str, records: int) -> None:
    with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", enable_auto_commit=False) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        _take(lambda: len(consumer.poll(1.0)), records)


def _aiokafka_produce(bootstrap: str, topic: str, records: int) -> None:
    from aiokafka import AIOKafkaProducer

    async def run() -> None:
        value = os.urandom(VALUE_BYTES)
        producer: Any = AIOKafkaProducer(
            bootstrap_servers=bootstrap, acks="all", linger_ms=LINGER_MS, max_batch_size=BATCH_BYTES
        )
        await producer.start()
        try:
            for _ in range(records):
                last = await producer.send(topic, value, partition=0)
            await producer.flush()
            await last
        finally:
            await producer.stop()

    asyncio.run(run())


def _aiokafka_consume(bootstrap: str, topic: str, records: int) -> None:
    from aiokafka import AIOKafkaConsumer
    from aiokafka import TopicPartition as Partition

    async def run() -> None:
        consumer: Any = AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
        await consumer.start()
        try:
            consumer.assign([Partition(topic, 0)])
            deadline, received = time.perf_counter() + LONGEST_WAIT_S, 0
            while received < records:
                _check(received, records, deadline)
                found = await consumer.getmany(timeout_ms=1000)
                received += sum(map(len, found.values()))
        finally:
            await consumer.stop()

    asyncio.run(run())


def _kafka_python_produce(bootstrap: str, topic: str, records: int) -> None:
    from kafka import KafkaProducer

    value = os.urandom(VALUE_BYTES)
    producer: Any = KafkaProducer(bootstrap_servers=bootstrap, acks="all", linger_ms=LINGER_MS, batch_size=BATCH_BYTES)
    try:
        for _ in range(records):
            last = producer.send(topic, value, partition=0)
        producer.flush(LONGEST_WAIT_S)
        last.get(0)
    finally:
        producer.close()


def _kafka_python_consume(bootstrap: str, topic: str, records: int) -> None:
    from kafka import KafkaConsumer
    from kafka import TopicPartition as Partition

    consumer: Any = KafkaConsumer(
        bootstrap_servers=bootstrap, auto_offset_reset="earliest", enable_auto_commit=False, group_id=None
    )
    try:
        consumer.assign([Partition(topic, 0)])
        _take(lambda: sum(map(len, consumer.poll(1000).values())), records)
    finally:
        consumer.close()


def _librdkafka_produce(bootstrap: str, topic: str, records: int) -> None:
    streams.produce_mb_s(bootstrap, topic, records)


def _librdkafka_consume(bootstrap: str, topic: str, records: int) -> None:
    consumer = ck.Consumer(
        {"bootstrap.servers": bootstrap, "log_level": 3, "group.id": "bench-clients", "enable.auto.commit": False}
    )
    try:
        consumer.assign([ck.TopicPartition(topic, 0, 0)])
        _take(lambda: len(consumer.consume(500, 1.0)), records)
    finally:
        consumer.close()


def _take(poll: Callable[[], int], records: int) -> None:
    deadline, received = time.perf_counter() + LONGEST_WAIT_S, 0
    while received < records:
        _check(received, records, deadline)
        received += poll()


def _check(received: int, records: int, deadline: float) -> None:
    if time.perf_counter() > deadline:
        raise StreamFailed(f"{received} of {records} records arrived")


FIRST = "kgctl"
PRODUCERS: dict[str, Work] = {
    FIRST: _kgctl_produce,
    "aiokafka": _aiokafka_produce,
    "kafka-python": _kafka_python_produce,
    "confluent-kafka": _librdkafka_produce,
}
CONSUMERS: dict[str, Work] = {
    FIRST: _kgctl_consume,
    "aiokafka": _aiokafka_consume,
    "kafka-python": _kafka_python_consume,
    "confluent-kafka": _librdkafka_consume,
}


def place(name: str, action: str) -> tuple[int, int]:
    """Where a figure is in the report."""
    return action == "consume", list(PRODUCERS).index(name)
