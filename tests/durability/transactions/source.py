"""A librdkafka producer in its own process that writes numbered transactions and aborts some of them.

Journal, with the number of the transaction: ["began", number], ["aborted", number], ["committed", number, [[position,
partition, offset], ...]], ["unknown", number, why]. Some transactions are begun by another producer, which forgets them;
their fate is known before: ["aborted", number].
"""

from __future__ import annotations

import argparse
from random import Random
from typing import Any

import confluent_kafka as ck

from tests.durability.journal import Journal, end_of_input
from tests.durability.producing import RECONNECT
from tests.durability.transactions.values import INPUT, Transaction, drawn

TIMEOUT_MS = 20_000
FORGOTTEN_TIMEOUT_MS = 1000
PAUSE_S = 0.002
ABORTED, FORGOTTEN = 0.2, 0.003  # shares of the transactions


def producer(bootstrap: str, transactional_id: str, timeout_ms: int = TIMEOUT_MS) -> ck.Producer:
    made = ck.Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": timeout_ms,
            "message.timeout.ms": timeout_ms,
            "linger.ms": 0,
            "batch.num.messages": 50,
            "retry.backoff.ms": 20,
            "log_level": 2,
            **RECONNECT,
        }
    )
    until_done(lambda: made.init_transactions(5))
    return made


def until_done(call: Any) -> None:
    """Repeat a call that may be repeated, as librdkafka demands."""
    while True:
        try:
            return call()
        except ck.KafkaException as error:
            if not error.args[0].retriable():
                raise


def send(made: ck.Producer, transaction: Transaction) -> list[tuple[int, int, int]]:
    """Send all records and wait for their acknowledgements: position, partition and offset of each."""
    placed: list[tuple[int, int, int]] = []

    def deliver(position: int) -> Any:
        def delivered(error: ck.KafkaError | None, message: ck.Message) -> None:
            if error is None:
                placed.append((position, message.partition(), message.offset()))

        return delivered

    for position, (partition, value) in enumerate(transaction.values()):
        made.produce(INPUT, value.encode(), partition=partition, on_delivery=deliver(position))
    while made.flush(1):
        pass
    return placed


class Source:
    def __init__(self, bootstrap: str, name: str, journal: Journal) -> None:
        self._bootstrap, self._name, self._journal = bootstrap, name, journal
        self._random = Random(name)
        self._producer = producer(bootstrap, name)
        self._forgotten: list[ck.Producer] = []

    def write(self, number: int) -> None:
        transaction = drawn(self._random, self._name, number)
        kind = self._random.random()
        if kind < FORGOTTEN:
            return self._forget(transaction)
        self._journal.note(("began", number))
        try:
            self._producer.begin_transaction()
            placed = send(self._producer, transaction)
            if len(placed) < len(transaction.places) or kind < ABORTED:
                self._abort(number)
            else:
                self._commit(number, placed)
        except ck.KafkaException as error:
            self._journal.note(("unknown", number, str(error)))
            self._producer = producer(self._bootstrap, self._name)
        return None

    def _commit(self, number: int, placed: list[tuple[int, int, int]]) -> None:
        try:
            until_done(lambda: self._producer.commit_transaction(5))
        except ck.KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
            self._abort(number)
        else:
            self._journal.note(("committed", number, sorted(placed)))

    def _abort(self, number: int) -> None:
        until_done(lambda: self._producer.abort_transaction(5))
        self._journal.note(("aborted", number))

    def _forget(self, transaction: Transaction) -> None:
        """Leave a transaction open, as a host that vanishes: the broker aborts it."""
        made = producer(self._bootstrap, f"{self._name}-forgotten-{transaction.number}", FORGOTTEN_TIMEOUT_MS)
        self._journal.note(("aborted", transaction.number))
        made.begin_transaction()
        send(made, transaction)
        self._forgotten.append(made)  # its end would abort the transaction


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("bootstrap", "journal", "name"):
        parser.add_argument(f"--{name}", required=True)
    given = parser.parse_args()
    journal, ended = Journal(given.journal), end_of_input()
    source, number = Source(given.bootstrap, given.name, journal), 0
    while not ended.wait(PAUSE_S):
        source.write(number)
        number += 1
    journal.note(("done",))


if __name__ == "__main__":
    main()
