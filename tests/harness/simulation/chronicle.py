"""The story of groups, judged: what the durable log says of generations its events say too, in the same transactions."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from broker.cores.groups.events import EventType, GroupEvent, to_json
from broker.cores.groups.records import (
    GenerationFloor,
    GroupMetadataRecord,
    GroupMetadataTombstone,
    OffsetsRow,
    from_row,
)
from tests.harness.simulation.terms import ensure

if TYPE_CHECKING:
    from tests.harness.simulation.disk import Disk


class EventRow(NamedTuple):
    """A record of __kgctl_group_events."""

    key: bytes
    value: bytes
    timestamp_ms: int


Change: TypeAlias = "OffsetsRow | GenerationFloor | EventRow"
STARTED, EMPTY, DELETED = (h.value for h in (EventType.REBALANCE_STARTED, EventType.EMPTY, EventType.DELETED))
WITH_MEMBERS = (EventType.STABLE.value, EventType.MEMBER_REPLACED.value)


class Chronicle:
    """Reads the transactions of a world's disk in order, and keeps the events that its brokers have told."""

    def __init__(self) -> None:
        self.told: list[bytes] = []  # of all steps so far, but for those that a crash has undone
        self._read = 0  # transactions
        self._kept: dict[str, int] = {}  # the generation of each group's newest record
        self._present: dict[str, int] = {}  # the generation that each group is in, as far as the log says
        self._closed: dict[str, int] = {}  # the newest generation that an event has told the end of
        self._called: dict[str, None] = {}  # groups whose rebalance has begun and has no next generation yet
        self._owed_starts: dict[str, int] = {}  # in the open transaction, as the next
        self._owed: dict[str, deque[tuple[tuple[str, ...], int]]] = {}

    def step(self, events: Iterable[GroupEvent]) -> None:
        self.told += [to_json(event) for event in events]

    def restarted(self, disk: Disk, acknowledged: int) -> None:
        """After a crash: the events on disk are those that were told first, up to the acknowledged ones at least.

        Unfinished rebalances are forgotten; a group is in the generation of its record again.
        """
        self.read(disk.journal)
        self._present = dict(self._kept)
        self._called.clear()
        values = [row.value for row in disk.durable.events]
        ensure(len(values) >= acknowledged, f"of {acknowledged} acknowledged events {len(values)} are on disk")
        ensure(values == self.told[: len(values)], "the events on disk are not those that were told, in their order")
        del self.told[len(values) :]

    def read(self, transactions: list[list[Change]]) -> None:
        """Look at the transactions that are new."""
        for changes in transactions[self._read :]:
            for change in changes:
                if isinstance(change, EventRow):
                    self._take_event(json.loads(change.value), change)
                else:
                    self._take_record(change)
            ensure(not self._owed_starts, f"the beginning of rebalances of {[*self._owed_starts]} is not told")
            ensure(not self._owed, f"{self._owed} is durable, and is not told in its transaction")
        self._read = len(transactions)

    def _take_record(self, change: OffsetsRow | GenerationFloor) -> None:
        if isinstance(change, GenerationFloor):
            if change.generation is not None:
                self._next_generation(change.group_id, change.generation)
            return
        record = from_row(change.key, change.value, change.timestamp_ms)
        if isinstance(record, GroupMetadataTombstone):
            self._owe(record.group_id, (DELETED,), self._present.pop(record.group_id, 0))
            self._kept.pop(record.group_id, None)
        elif isinstance(record, GroupMetadataRecord) and record.generation:
            if not record.members:
                self._next_generation(record.group_id, record.generation)
            ensure(self._present.get(record.group_id) == record.generation, f"{record} skips its generation floor")
            self._kept[record.group_id] = record.generation
            self._owe(record.group_id, WITH_MEMBERS if record.members else (EMPTY,), record.generation)

    def _next_generation(self, group_id: str, generation: int) -> None:
        before = self._present.get(group_id, 0)
        self._present[group_id] = generation
        if group_id in self._called:
            del self._called[group_id]
        else:
            # Records of a step stand before its events.
            self._owed_starts[group_id] = before

    def _owe(self, group_id: str, happenings: tuple[str, ...], generation: int) -> None:
        self._owed.setdefault(group_id, deque()).append((happenings, generation))

    def _take_event(self, told: dict[str, Any], row: EventRow) -> None:
        group_id, happening, generation = told["group"], told["event"], told["generation"]
        ensure((row.key, row.timestamp_ms) == (group_id.encode(), told["timestamp"]), f"{row} is not {told}")
        if happening == STARTED:
            ensure(group_id not in self._called, f"a rebalance of {group_id} begins in a rebalance")
            if group_id in self._owed_starts:
                ensure(generation == self._owed_starts.pop(group_id), f"{told} names a generation that does not end")
                return
            ensure(generation == self._present.get(group_id, 0), f"{told} names a generation that does not end")
            self._called[group_id] = None
            return
        owed_events = self._owed.get(group_id, deque([((), -1)]))
        happenings, owed = owed_events.popleft()
        if not owed_events:
            self._owed.pop(group_id, None)
        ensure(happening in happenings and generation == owed, f"{told} is told, and not durable: {happenings} {owed}")
        if happening == DELETED:
            self._closed.pop(group_id, None)
            return
        closed = self._closed.get(group_id, 0)
        goes_on = happening == EventType.MEMBER_REPLACED.value
        ensure(generation == closed if goes_on else generation > closed, f"{told} follows generation {closed}")
        self._closed[group_id] = generation
