"""A copier of fixed partitions over the wire in its own process, with the journal of `copier`, in either version."""

from __future__ import annotations

import argparse
from itertools import islice
from random import Random

from tests.durability.journal import Journal, end_of_input
from tests.durability.transactions.committed import committed_offsets, committed_values, stable_ends
from tests.durability.transactions.copier import ABORTED
from tests.durability.transactions.values import INPUT, PARTITIONS
from tests.durability.transactions.wire_producer import PAUSE_S, Connection, Refused, WireProducer

MOST = 100  # records of a partition in one transaction


class WireCopier:
    def __init__(self, given: argparse.Namespace, connection: Connection, journal: Journal) -> None:
        self._given, self._connection, self._journal = given, connection, journal
        self._random = Random(given.name)
        # Fence the last copier before reading how far it came.
        self._producer = WireProducer(connection, given.name, given.version)
        self._positions: dict[int, int] = {}
        self._from_committed()

    def copy(self) -> bool:
        """Copy what there is in one transaction. False if there is nothing."""
        consumed = {p: found for p in self._given.partitions if (found := self._consume(p))}
        if not consumed:
            return False
        for p, found in consumed.items():
            self._producer.send(self._given.output, p, [f"{p} {offset} {value}" for offset, value in found])
        reached = {p: found[-1][0] + 1 for p, found in consumed.items()}
        self._producer.send_offsets(self._given.group, INPUT, reached)
        is_committed = self._random.random() >= ABORTED
        self._producer.end(committed=is_committed)
        if is_committed:
            self._positions |= reached
            self._journal.note(("copied", reached))
        else:
            self._journal.note(("aborted", "on purpose"))
            self._from_committed()
        return True

    def _consume(self, partition: int) -> list[tuple[int, str]]:
        start, ends = self._positions[partition], self._connection.use(lambda c: stable_ends(c, INPUT, PARTITIONS))
        return list(
            self._connection.use(
                lambda c: list(islice(committed_values(c, INPUT, partition, start, ends[partition]), MOST))
            )
        )

    def _from_committed(self) -> None:
        offsets = self._connection.use(lambda client: committed_offsets(client, self._given.group))
        self._positions = {p: offsets.get(p, 0) for p in self._given.partitions}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("bootstrap", "journal", "name", "group", "output"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--partitions", required=True, type=lambda text: [int(p) for p in text.split(",")])
    parser.add_argument("--version", required=True, type=int, help="of transactions")
    given = parser.parse_args()
    journal, ended = Journal(given.journal), end_of_input()
    host, _, port = given.bootstrap.rpartition(":")
    try:
        copier = WireCopier(given, Connection((host, int(port)), given.name, ended), journal)
        while not ended.is_set():
            if not copier.copy():
                ended.wait(5 * PAUSE_S)
    except Refused as error:
        journal.note(("fenced" if error.is_fenced else "refused", str(error)))
        if not error.is_fenced:
            raise
    journal.note(("done",))


if __name__ == "__main__":
    main()
