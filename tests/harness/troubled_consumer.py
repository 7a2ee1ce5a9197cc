"""`python -m tests.harness.troubled_consumer`: consumers of one group in a process of their own, with confluent-kafka, each with the
same trouble. The process ends when its stdin closes.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import threading
from contextlib import closing
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

HEALTHY, POISON, SLOW, NEVER = "healthy", "poison", "slow", "never"
POISONED = 5  # the offset of the record that the consumer fails at, in partition 0
SLOW_S = 0.1


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("trouble", choices=(HEALTHY, POISON, SLOW, NEVER))
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--group", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--session-ms", type=int, required=True)
    parser.add_argument("--members", type=int, default=1)
    parser.add_argument("--first", type=int, default=1, help="number of the first member")
    given = parser.parse_args()
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    consumers = [_consumer(given, number) for number in range(given.first, given.first + given.members)]
    if given.members == 1:
        _consume(consumers[0], given.trouble, ended)
    else:
        while not ended.wait(0.1):
            for consumer in consumers:
                consumer.consume(1_000, 0)
    # The group need not learn that they leave: the broker ends, too.


def _consumer(given: argparse.Namespace, number: int) -> Consumer:
    consumer = Consumer(
        {
            "bootstrap.servers": given.bootstrap,
            "group.id": given.group,
            "client.id": f"{given.group}-{number}",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": given.trouble == HEALTHY,
            "auto.commit.interval.ms": 300,
            "session.timeout.ms": given.session_ms,
            "heartbeat.interval.ms": given.session_ms // 6,
            "reconnect.backoff.max.ms": 200,
            "log_level": 0,
        }
    )
    consumer.subscribe([given.topic])
    return consumer


def _consume(consumer: Consumer, trouble: str, ended: threading.Event) -> None:
    with closing(consumer):
        while not ended.is_set():
            message: Any = consumer.poll(0.1)
            if message is None or message.error():
                continue
            if trouble == POISON and message.partition() == 0 and message.offset() == POISONED:
                consumer.seek(TopicPartition(message.topic(), 0, POISONED))
                ended.wait(0.05)
                continue
            if trouble == SLOW:
                ended.wait(SLOW_S)
            if trouble in (POISON, SLOW):
                with contextlib.suppress(KafkaException):
                    consumer.commit(message, asynchronous=False)


if __name__ == "__main__":
    main()
