"""Hard state: the transactional ids, changed only by applying state records, live and at recovery alike."""

from __future__ import annotations

from broker.cores.core import BrokenInvariant
from broker.cores.transactions.records import StateRecord, TransactionRecord, TransactionTombstone


class HardState:
    """The newest record of each transactional id."""

    __slots__ = ("transactions",)

    def __init__(self) -> None:
        self.transactions: dict[str, TransactionRecord] = {}

    def apply(self, record: StateRecord) -> None:
        if isinstance(record, TransactionRecord):
            self.transactions[record.transactional_id] = record
        elif isinstance(record, TransactionTombstone):
            self.transactions.pop(record.transactional_id, None)
        else:
            raise BrokenInvariant(f"{type(record).__name__} is not a state record of transactions")
