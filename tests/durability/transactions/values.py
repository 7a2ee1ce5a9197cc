"""The values of input records: each names its transaction and the partitions of all its records."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

INPUT, OUTPUT, PARTITIONS = "input", "output", 4


class Transaction(NamedTuple):
    source: str
    number: int
    places: str  # the digit at position i is the partition of record i

    def values(self) -> list[tuple[int, str]]:
        """Partition and value of each record."""
        return [(int(p), f"{self.source} {self.number} {i} {self.places}") for i, p in enumerate(self.places)]


def parse(value: str) -> tuple[Transaction, int]:
    """The transaction of a record, and its position there."""
    source, number, i, places = value.split()
    return Transaction(source, int(number), places), int(i)


def drawn(random: Random, source: str, number: int) -> Transaction:
    """A transaction over one to all partitions; a few have hundreds of records."""
    some = random.sample("0123"[:PARTITIONS], random.randint(1, PARTITIONS))
    count = 300 if random.random() < 0.03 else random.randint(1, 12)
    return Transaction(source, number, "".join(random.choice(some) for _ in range(count)))
