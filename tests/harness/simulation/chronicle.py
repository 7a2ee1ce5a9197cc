"""Checks events against the log: each durable transaction holds exactly the events of its generation changes."""

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
    """Reads the transactions of a world's disk in order and records the events that its brokers have emitted."""

    def __init__(self) -> None:
        self.emitted: list[bytes] = []  # of all steps so far, except those that a crash has undone
        self._read = 0  # how many transactions were read
        self._stored: dict[str, int] = {}  # the generation of each group's newest state record
        self._present: dict[str, int] = {}  # the present generation of each group according to the log
        self._ended: dict[str, int] = {}  # the newest generation whose end an event has reported
        self._rebalancing: dict[str, None] = {}  # groups with a started rebalance and no next generation yet
        self._expected_starts: dict[str, int] = {}  # expected in the open transaction, as are the next
        self._expected: dict[str, deque[tuple[tuple[str, ...], int]]] = {}

    def step(self, events: Iterable[GroupEvent]) -> None:
        self.emitted += [to_json(event) for event in events]

    def restarted(self, disk: Disk, acknowledged: int) -> None:
        """Check after a crash: the events on disk are the first ones emitted, at least up to those that were acknowledged.

        Unfinished rebalances are forgotten, and each group returns to the generation of its state record.
        """
        self.read(disk.journal)
        self._present = dict(self._stored)
        self._rebalancing.clear()
        values = [row.value for row in disk.durable.events]
        ensure(len(values) >= acknowledged, f"{acknowledged} events were acknowledged, {len(values)} are on disk")
        ensure(values == self.emitted[: len(values)], "the events on disk are not those that were emitted, in order")
        del self.emitted[len(values) :]

    def read(self, transactions: list[list[Change]]) -> None:
        """Check the new transactions."""
        for changes in transactions[self._read :]:
            for change in changes:
                if isinstance(change, EventRow):
                    self._take_event(json.loads(change.value), change)
                else:
                    self._take_record(change)
            ensure(
                not self._expected_starts, f"no event reports the rebalances that started in {[*self._expected_starts]}"
            )
            ensure(not self._expected, f"{self._expected} is durable without an event in its transaction")
        self._read = len(transactions)

    def _take_record(self, change: OffsetsRow | GenerationFloor) -> None:
        if isinstance(change, GenerationFloor):
            if change.generation is not None:
                self._next_generation(change.group_id, change.generation)
            return
        record = from_row(change.key, change.value, change.timestamp_ms)
        if isinstance(record, GroupMetadataTombstone):
            self._expect(record.group_id, (DELETED,), self._present.pop(record.group_id, 0))
            self._stored.pop(record.group_id, None)
        elif isinstance(record, GroupMetadataRecord) and record.generation:
            if not record.members:
                self._next_generation(record.group_id, record.generation)
            ensure(
                self._present.get(record.group_id) == record.generation, f"{record} does not match its generation floor"
            )
            self._stored[record.group_id] = record.generation
            self._expect(record.group_id, WITH_MEMBERS if record.members else (EMPTY,), record.generation)

    def _next_generation(self, group_id: str, generation: int) -> None:
        before = self._present.get(group_id, 0)
        self._present[group_id] = generation
        if group_id in self._rebalancing:
            del self._rebalancing[group_id]
        else:
            # The state records of a step precede its events.
            self._expected_starts[group_id] = before

    def _expect(self, group_id: str, event_types: tuple[str, ...], generation: int) -> None:
        self._expected.setdefault(group_id, deque()).append((event_types, generation))

    def _take_event(self, event: dict[str, Any], row: EventRow) -> None:
        group_id, event_type, generation = event["group"], event["event"], event["generation"]
        ensure((row.key, row.timestamp_ms) == (group_id.encode(), event["timestamp"]), f"{row} does not match {event}")
        if event_type == STARTED:
            ensure(group_id not in self._rebalancing, f"a rebalance of {group_id} starts during a rebalance")
            if group_id in self._expected_starts:
                ensure(generation == self._expected_starts.pop(group_id), f"{event} names the wrong generation")
                return
            ensure(generation == self._present.get(group_id, 0), f"{event} names the wrong generation")
            self._rebalancing[group_id] = None
            return
        expected = self._expected.get(group_id, deque([((), -1)]))
        event_types, expected_generation = expected.popleft()
        if not expected:
            self._expected.pop(group_id, None)
        ensure(
            event_type in event_types and generation == expected_generation,
            f"{event} has no durable change: expected {event_types} {expected_generation}",
        )
        if event_type == DELETED:
            self._ended.pop(group_id, None)
            return
        closed = self._ended.get(group_id, 0)
        continues = event_type == EventType.MEMBER_REPLACED.value
        ensure(generation == closed if continues else generation > closed, f"{event} follows generation {closed}")
        self._ended[group_id] = generation
