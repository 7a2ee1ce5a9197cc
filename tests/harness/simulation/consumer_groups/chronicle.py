"""Checks the events of consumer groups against the log: each group epoch has its event in the same transaction."""

from __future__ import annotations

from typing import Any

from broker.cores.groups.events import EventType
from broker.cores.groups.records import GenerationFloor, GroupMetadataTombstone, OffsetsRow, from_row
from broker.cores.groups.records.consumer import GroupEpochRecord
from tests.harness.simulation.chronicle import Change, Chronicle, EventRow
from tests.harness.simulation.terms import ensure

# A new epoch starts a rebalance, unless the group has become empty.
EPOCH_EVENTS = (EventType.REBALANCE_STARTED.value, EventType.EMPTY.value)


def is_consumer_group(group_id: str) -> bool:
    """Whether members of the consumer protocol use it in these worlds."""
    return group_id.startswith("k")


class ConsumerGroupsChronicle(Chronicle):
    def __init__(self) -> None:
        super().__init__()
        self.epochs: dict[str, int] = {}  # the group epoch of each consumer group, as the log has it
        self._unreported: dict[tuple[str, int], None] = {}

    def read(self, transactions: list[list[Change]]) -> None:
        super().read(transactions)
        ensure(not self._unreported, f"no event reports the epochs {[*self._unreported]}")

    def _take_record(self, change: OffsetsRow | GenerationFloor) -> None:
        if isinstance(change, GenerationFloor):
            return super()._take_record(change)
        record = from_row(change.key, change.value, change.timestamp_ms)
        if isinstance(record, GroupMetadataTombstone) and is_consumer_group(record.group_id):
            return None  # a group that had only offsets becomes one of consumers
        if not isinstance(record, GroupEpochRecord):
            return super()._take_record(change)
        group_id, epoch = record.group_id, record.epoch
        if epoch is None:
            self.epochs.pop(group_id, None)
        else:
            ensure(epoch == self.epochs.get(group_id, 0) + 1, f"{record} follows {self.epochs.get(group_id)}")
            self.epochs[group_id] = epoch
            self._unreported[group_id, epoch] = None
        return None

    def _take_event(self, event: dict[str, Any], row: EventRow) -> None:
        if not is_consumer_group(event["group"]):
            return super()._take_event(event, row)
        if event["event"] in EPOCH_EVENTS:
            self._unreported.pop((event["group"], event["generation"]), None)
        return None
