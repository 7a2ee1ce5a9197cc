"""Produce and consume rates with a real client: confluent-kafka, one partition, records of 1 KiB that do not compress."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping

import confluent_kafka as ck

VALUE_BYTES = 1024
LONGEST_WAIT_S = 120.0
PLAINTEXT: Mapping[str, str] = {}


class StreamFailed(Exception):
    """Records were refused or did not arrive."""


def produce_mb_s(bootstrap: str, topic: str, records: int, security: Mapping[str, str] = PLAINTEXT) -> float:
    """Throughput with acks=all, from the first record to the last acknowledgement. `security` has options of librdkafka."""
    producer = ck.Producer(
        {
            "bootstrap.servers": bootstrap,
            "log_level": 3,
            "acks": "all",
            "linger.ms": 5,
            "queue.buffering.max.messages": 200_000,
            "queue.buffering.max.kbytes": 262_144,
            **security,
        }
    )
    value, failures = os.urandom(VALUE_BYTES), list[str]()

    def delivered(error: ck.KafkaError | None, _: ck.Message) -> None:
        if error is not None:
            failures.append(str(error))

    began = time.perf_counter()
    for n in range(records):
        while True:
            try:
                producer.produce(topic, value, partition=0, on_delivery=delivered)
                break
            except BufferError:
                producer.poll(0.05)
        if n % 1000 == 0:
            producer.poll(0)
    left = producer.flush(LONGEST_WAIT_S)
    took = time.perf_counter() - began
    if left or failures:
        raise StreamFailed(f"{left} of {records} records unanswered, {len(failures)} failed: {failures[:1]}")
    return records * VALUE_BYTES / took / 1e6


def consume_mb_s(bootstrap: str, topic: str, records: int, security: Mapping[str, str] = PLAINTEXT) -> float:
    """Throughput from the first received record to the last, without connection and lookups."""
    consumer = ck.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "log_level": 3,
            "group.id": "bench-reader",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            **security,
        }
    )
    try:
        consumer.assign([ck.TopicPartition(topic, 0, 0)])
        deadline = time.perf_counter() + LONGEST_WAIT_S
        first = _take(consumer, 1)
        while not first and time.perf_counter() < deadline:
            first = _take(consumer, 1)
        began, received = time.perf_counter(), 0
        while received < records - first and time.perf_counter() < deadline:
            received += _take(consumer, 10_000)
        took = time.perf_counter() - began
    finally:
        consumer.close()
    if received < records - first:
        raise StreamFailed(f"{received + first} of {records} records arrived")
    return received * VALUE_BYTES / took / 1e6


def _take(consumer: ck.Consumer, most: int) -> int:
    return sum(1 for message in consumer.consume(most, 0.2) if message.error() is None)
