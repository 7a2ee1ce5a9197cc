"""A source over the wire in its own process, with the journal of `source`: numbered transactions, some of them aborted."""

from __future__ import annotations

import argparse
from random import Random

from tests.durability.journal import Journal, end_of_input
from tests.durability.transactions.source import ABORTED, PAUSE_S
from tests.durability.transactions.values import INPUT, Transaction, drawn
from tests.durability.transactions.wire_producer import Connection, Refused, WireProducer


def send(producer: WireProducer, transaction: Transaction) -> list[tuple[int, int, int]]:
    """Send all records: position, partition and offset of each."""
    values = transaction.values()
    placed = []
    for partition in sorted({partition for partition, _ in values}):
        positions = [i for i, (at, _) in enumerate(values) if at == partition]
        base = producer.send(INPUT, partition, [values[i][1] for i in positions])
        placed += [(i, partition, base + n) for n, i in enumerate(positions)]
    return placed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("bootstrap", "journal", "name"):
        parser.add_argument(f"--{name}", required=True)
    given = parser.parse_args()
    journal, ended, random, number = Journal(given.journal), end_of_input(), Random(given.name), 0
    host, _, port = given.bootstrap.rpartition(":")
    producer = WireProducer(Connection((host, int(port)), given.name, ended), given.name, 2)
    while not ended.wait(PAUSE_S):
        transaction, is_committed = drawn(random, given.name, number), random.random() >= ABORTED
        journal.note(("began", number))
        try:
            placed = send(producer, transaction)
            producer.end(committed=is_committed)
            journal.note(("committed", number, sorted(placed)) if is_committed else ("aborted", number))
        except Refused as error:
            journal.note(("unknown", number, str(error)))
            producer.begin_again()
        number += 1
    journal.note(("done",))


if __name__ == "__main__":
    main()
