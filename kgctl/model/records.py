"""Rows about produced records."""

from __future__ import annotations

from broker.light_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ProducedPartition:
    """The records written to one partition. Offsets are None if the broker did not acknowledge (acks=0)."""

    partition: int
    records: int
    first_offset: int | None
    last_offset: int | None

    def __str__(self) -> str:
        if self.first_offset is None:
            return f"{self.partition}:-"
        return f"{self.partition}:{self.first_offset}-{self.last_offset}"


@dataclass(frozen=True, slots=True)
class ProducedTransactions:
    """How many transactions are committed, and up to which line of the input.

    `outcome` is that of the last transaction: committed, aborted, times out (the broker aborts it later), or unknown. If it
    is not committed, these are its lines.
    """

    transactional_id: str
    committed: int
    committed_line: int | None
    outcome: str
    first_line: int | None
    last_line: int | None


@dataclass(frozen=True, slots=True)
class Produced:
    """The result of one run of `kgctl produce`; `bytes` counts keys and values.

    In transactions, the records are those that are committed.
    """

    topic: str
    records: int
    bytes: int
    acknowledged: bool
    partitions: tuple[ProducedPartition, ...]
    transactions: ProducedTransactions | None = None

    def sentence(self) -> str:
        parts = []
        for one in self.partitions:
            where = f"partition {one.partition}"
            if one.first_offset is not None and one.first_offset == one.last_offset:
                where += f" offset {one.first_offset}"
            elif one.first_offset is not None:
                where += f" offsets {one.first_offset}-{one.last_offset}"
            parts.append(where)
        amount = f"{_count(self.records, 'record')} ({_count(self.bytes, 'byte')})"
        outcome = f"acknowledged by {self.topic}" if self.acknowledged else f"sent to {self.topic}, not acknowledged"
        if self.transactions is not None:
            outcome = f"committed to {self.topic} in {_count(self.transactions.committed, 'transaction')}"
        return f"{amount} {outcome}" + (f": {', '.join(parts)}" if parts else "")


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + "s" * (number != 1)
