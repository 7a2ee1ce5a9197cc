"""Consume, transform, produce with librdkafka in its own process: copies each committed input record once.

An output record is "PARTITION OFFSET VALUE" of its input record, in the same partition. Journal: ["copied", {partition: next
offset}] after each commit, ["aborted", why]. It exits when another copier with its name has fenced it.
"""

from __future__ import annotations

import argparse
import os
import threading
from random import Random

import confluent_kafka as ck

from tests.durability.journal import Journal, end_of_input
from tests.durability.producing import RECONNECT
from tests.durability.transactions.source import producer, until_done
from tests.durability.transactions.values import INPUT

ABORTED, STUCK_S = 0.1, 8.0
HUNG = 3  # the exit code after a call that does not return
FENCED = (ck.KafkaError._FENCED, ck.KafkaError.PRODUCER_FENCED)


class Copier:
    def __init__(self, given: argparse.Namespace, journal: Journal) -> None:
        self._given, self._journal = given, journal
        self._random = Random(given.name)
        self._producer = producer(given.bootstrap, given.name)
        self._consumer = ck.Consumer(
            {
                "bootstrap.servers": given.bootstrap,
                "group.id": given.group,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "session.timeout.ms": 2000,
                "heartbeat.interval.ms": 200,
                "fetch.wait.max.ms": 50,
                "fetch.error.backoff.ms": 20,
                "log_level": 2,
                **RECONNECT,
            }
        )
        self._consumer.subscribe([INPUT])

    def copy(self) -> None:
        messages = [m for m in self._consumer.consume(100, 0.05) if m.error() is None]
        if not messages:
            return
        made = self._producer
        made.begin_transaction()
        for m in messages:
            value = f"{m.partition()} {m.offset()} {m.value().decode()}"
            made.produce(self._given.output, value.encode(), partition=m.partition())
        reached = {m.partition(): m.offset() + 1 for m in messages}
        offsets = [ck.TopicPartition(INPUT, p, offset) for p, offset in reached.items()]
        try:
            until_done(lambda: made.send_offsets_to_transaction(offsets, self._consumer.consumer_group_metadata(), 5))
            if self._random.random() < ABORTED:
                self._abort("on purpose")
            else:
                until_done(lambda: made.commit_transaction(5))
                self._journal.note(("copied", reached))
        except ck.KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
            self._abort(str(error))

    def _abort(self, why: str) -> None:
        until_done(lambda: self._producer.abort_transaction(5))
        self._journal.note(("aborted", why))
        for place in self._consumer.committed(self._consumer.assignment(), 10):
            begin = place.offset if place.offset >= 0 else ck.OFFSET_BEGINNING
            self._consumer.seek(ck.TopicPartition(INPUT, place.partition, begin))

    def close(self) -> None:
        self._consumer.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("bootstrap", "journal", "name", "group", "output"):
        parser.add_argument(f"--{name}", required=True)
    given = parser.parse_args()
    journal, ended = Journal(given.journal), end_of_input()
    copier = Copier(given, journal)
    while not ended.is_set():
        # After a restart of any broker, `send_offsets_to_transaction` sometimes ignores its timeout.
        watch = threading.Timer(STUCK_S, lambda: os._exit(HUNG))
        watch.daemon = True
        watch.start()
        try:
            copier.copy()
        except ck.KafkaException as error:
            if error.args[0].code() in FENCED:
                journal.note(("fenced", str(error)))
                return
            # A new producer with this id aborts what the last one left open.
            journal.note(("aborted", str(error)))
            copier.close()
            copier = Copier(given, journal)
        finally:
            watch.cancel()
    copier.close()
    journal.note(("done",))


if __name__ == "__main__":
    main()
