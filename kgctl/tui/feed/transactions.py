"""The reads of open transactions."""

from __future__ import annotations

import time
from typing import ClassVar

from broker.light_dataclasses import dataclass
from kgctl.client.admin.admin import Admin
from kgctl.client.admin.transactions import open_transactions
from kgctl.model.watched_transactions import HangingSnapshot, TransactionsSnapshot
from kgctl.tui.feed.read import Read

# Of more transactions than these, only the oldest are read with their partitions.
MOST = 500
# The longest transaction timeout that Kafka's default configuration permits.
HANGING_AFTER_MS = 900_000


@dataclass(frozen=True, slots=True)
class Transactions(Read[TransactionsSnapshot]):
    """The open transactions now, with their partitions."""

    def run(self, admin: Admin) -> TransactionsSnapshot:
        now_ms = time.time_ns() // 1_000_000
        rows, total, errors = admin.run(open_transactions(admin.cluster, now_ms, MOST))
        partitions = admin.transaction_partitions(rows)
        return TransactionsSnapshot(time.monotonic(), now_ms, tuple(rows), tuple(partitions), total, errors)


@dataclass(frozen=True, slots=True)
class Hanging(Read[HangingSnapshot]):
    """The transactions that hang: it asks the leader of every partition."""

    is_long: ClassVar[bool] = True

    @property
    def lane(self) -> str:
        return "hanging transactions"

    def run(self, admin: Admin) -> HangingSnapshot:
        rows = admin.find_hanging_transactions(HANGING_AFTER_MS)
        return HangingSnapshot(time.time_ns() // 1_000_000, tuple(rows))
