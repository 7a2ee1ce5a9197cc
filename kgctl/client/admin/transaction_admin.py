"""The operations of the admin client about transactions and producers. Each imports its module: other commands do not load it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from kgctl.client.admin.operation import ADDITION_SECONDS, Operations, operation
from kgctl.client.net.steps import Steps, Within

if TYPE_CHECKING:
    from kgctl.client.admin.aborts import HangingTarget
    from kgctl.model.groups import GroupDescription
    from kgctl.model.topic_partition import TopicPartition
    from kgctl.model.transactions import (
        GroupHold,
        HangingTransaction,
        Hold,
        ProducerRow,
        TransactionAbort,
        TransactionListings,
        TransactionPartition,
        TransactionRow,
    )


class TransactionAdmin(Operations):
    """See Admin."""

    @operation
    def list_transactions(
        self,
        states: Sequence[str] = (),
        producer_ids: Sequence[int] = (),
        older_than_ms: int | None = None,
        pattern: str | None = None,
    ) -> Steps[TransactionListings]:
        from kgctl.client.admin import transactions

        return transactions.list_with_ages(self.cluster, _wall_ms(), states, producer_ids, older_than_ms, pattern)

    @operation
    def describe_transactions(self, names: Sequence[str]) -> Steps[list[TransactionRow]]:
        from kgctl.client.admin import transactions

        return transactions.describe_transactions(self.cluster, names, _wall_ms())

    @operation
    def transaction_partitions(self, rows: Sequence[TransactionRow]) -> Steps[list[TransactionPartition]]:
        from kgctl.client.admin import producers

        return producers.transaction_partitions(self.cluster, rows)

    @operation
    def describe_producers(
        self, partitions: Sequence[TopicPartition], broker_id: int | None = None
    ) -> Steps[list[ProducerRow]]:
        from kgctl.client.admin import producers

        return producers.named_producers(self.cluster, partitions, broker_id)

    @operation
    def holds(self, partitions: Iterable[TopicPartition]) -> Steps[dict[TopicPartition, Hold]]:
        from kgctl.client.admin import producers

        return producers.holds(self.cluster, partitions, _wall_ms())

    @operation
    def group_holds(self, groups: Sequence[GroupDescription]) -> Within[list[GroupHold]]:
        from kgctl.client.admin import producers

        steps = producers.group_holds(self.cluster, groups, _wall_ms())
        return self.shortly(steps, ADDITION_SECONDS)

    @operation
    def find_hanging_transactions(
        self,
        older_than_ms: int,
        topics: Sequence[str] | None = None,
        partitions: Iterable[int] | None = None,
        broker_id: int | None = None,
    ) -> Steps[list[HangingTransaction]]:
        from kgctl.client.admin import aborts

        return aborts.find_hanging(self.cluster, topics, partitions, broker_id, older_than_ms, _wall_ms())

    @operation
    def plan_fencing(self, names: Sequence[str]) -> Steps[list[TransactionAbort]]:
        from kgctl.client.admin import aborts

        return aborts.plan_fencing(self.cluster, names, _wall_ms())

    @operation
    def fence(self, plan: Sequence[TransactionAbort]) -> Steps[list[TransactionAbort]]:
        from kgctl.client.admin import aborts

        return aborts.fence(self.cluster, plan)

    @operation
    def plan_abort_marker(self, target: HangingTarget, *, force: bool = False) -> Steps[TransactionAbort]:
        from kgctl.client.admin import aborts

        return aborts.plan_marker(self.cluster, target, _wall_ms(), force=force)

    @operation
    def write_abort_marker(self, row: TransactionAbort) -> Steps[TransactionAbort]:
        from kgctl.client.admin import aborts

        return aborts.write_marker(self.cluster, row)


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000
