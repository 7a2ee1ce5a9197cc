"""A librdkafka producer in its own process. It notes every acknowledged record before it sends the next ones.

Values are "NAME NUMBER", numbered from 0 in each partition. Journal: ["acked", partition, number, offset], ["failed", ...].
"""

from __future__ import annotations

import argparse
import itertools
from typing import Any

import confluent_kafka as ck

from tests.durability.journal import Journal, end_of_input

BURST, EVERY_S, MOST_WAITING = 10, 0.01, 400
RECONNECT = {"reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 100}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("bootstrap", "topic", "journal", "name"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--partitions", required=True, type=int)
    parser.add_argument("--idempotent", action="store_true")
    given = parser.parse_args()
    journal, ended = Journal(given.journal), end_of_input()
    events: list[tuple[Any, ...]] = []
    producer = ck.Producer(
        {
            "bootstrap.servers": given.bootstrap,
            "enable.idempotence": given.idempotent,
            "acks": "all",
            # With more than one request in flight, retries of a plain producer can reorder records.
            "max.in.flight.requests.per.connection": 5 if given.idempotent else 1,
            "batch.num.messages": 20,
            "linger.ms": 2,
            "message.timeout.ms": 0,
            "retry.backoff.ms": 20,
            **RECONNECT,
        }
    )

    def deliver(partition: int, number: int) -> Any:
        def delivered(error: ck.KafkaError | None, message: ck.Message) -> None:
            if error is not None:
                events.append(("failed", partition, number, str(error)))
            else:
                events.append(("acked", partition, number, message.offset()))

        return delivered

    def poll(timeout_s: float) -> None:
        producer.poll(timeout_s)
        journal.note(*events)
        events.clear()

    turns = itertools.count()
    while True:
        for turn in itertools.islice(turns, BURST if len(producer) < MOST_WAITING else 0):
            number, partition = divmod(turn, given.partitions)
            value = f"{given.name} {number}".encode()
            producer.produce(given.topic, value, partition=partition, on_delivery=deliver(partition, number))
        poll(0)
        if ended.wait(EVERY_S):
            break
    while len(producer):
        poll(0.1)
    journal.note(("done",))


if __name__ == "__main__":
    main()
