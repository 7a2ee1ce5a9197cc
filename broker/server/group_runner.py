"""GroupRunner: what is specific to the groups core around its runner.

Its state records become rows of `__consumer_offsets` and generation floors, its events rows of `__kgctl_group_events` and log
lines. The offsets of a group stay in the store until a request needs them, and expire there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from broker.cores.core import Effects
from broker.cores.groups.events import to_json
from broker.cores.groups.records import GenerationFloor, from_row, to_row
from broker.server.group_lines import log_events
from broker.server.runner import Runner
from broker.storage import EVENTS_TOPIC, OFFSETS_TOPIC, TopicRow

if TYPE_CHECKING:
    import asyncio

    from broker.cores.groups.coordinator import Coordinator
    from broker.cores.groups.events import GroupEvent
    from broker.cores.groups.records import StateRecord
    from broker.cores.groups.step import GroupEffects
    from broker.protocol.wire_types import Message
    from broker.server.exchange import Answerable
    from broker.server.fetch_waiters import FetchWaiters
    from broker.server.flush import Flusher
    from broker.storage import Log

# How long the expiry of unloaded offsets may run at a time, and how long it then pauses.
EXPIRY_TURN_S, EXPIRY_PAUSE_S = 0.005, 0.01


class GroupRunner:
    """Runs the groups core over the log."""

    def __init__(
        self,
        coordinator: Coordinator,
        log: Log,
        flusher: Flusher,
        waiters: FetchWaiters,
        loop: asyncio.AbstractEventLoop,
        wall_ms: Callable[[], int],
        expiry_interval_ms: int,
    ) -> None:
        self.coordinator = coordinator
        self._log = log
        self._flusher = flusher
        self._waiters = waiters
        self._loop = loop
        self._wall_ms = wall_ms
        self.runner = Runner(coordinator, self._append, flusher, loop, wall_ms)
        self._partitions = log.topics[OFFSETS_TOPIC].partition_count
        self._expiry_interval_s = expiry_interval_ms / 1000
        self._expiry_timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        """How many requests wait for an answer of the core."""
        return len(self.runner)

    def recover(self) -> None:
        """Apply the stored hard state to the core, and start it."""
        apply = self.coordinator.apply
        for record in _records(self._log.groups.metadata_rows()):
            apply(record)
        for group_id, generation in self._log.groups.generation_floors().items():
            apply(GenerationFloor(group_id, generation))
        self.coordinator.expect_offsets(self._log.groups.ids_with_offsets())
        self.runner.resume()
        self._expiry_timer = self._loop.call_later(self._expiry_interval_s, self._start_expiry)

    def load_and_submit(self, request: Message, exchange: Answerable, group_ids: Sequence[str]) -> None:
        """Run one request that needs the committed offsets of these groups."""
        self.runner.submit(request, exchange, partial(self._load, group_ids))

    def topic_deleted(self, topic: str) -> None:
        """Drop the offsets that groups committed for a deleted topic."""
        self.runner.step(self._forget_topic, topic)

    def stop(self) -> None:
        """Run no further step by timer."""
        self.runner.stop()
        if self._expiry_timer is not None:
            self._expiry_timer.cancel()
            self._expiry_timer = None

    # ---- effects ---------------------------------------------------------------------------------------------------

    def _append(self, effects: GroupEffects) -> None:
        if effects.state_records:
            self._append_records(effects.state_records)
        if effects.events:
            self._append_events(effects.events)

    def _append_records(self, records: list[StateRecord]) -> None:
        rows = []
        for record in records:
            if isinstance(record, GenerationFloor):
                self._log.groups.set_generation_floor(record.group_id, record.generation)
            else:
                rows.append(to_row(record, self._partitions))
        if rows:
            self._log.append_rows(OFFSETS_TOPIC, rows)
            for row in rows:
                self._waiters.moved(OFFSETS_TOPIC, row.partition)
        self._flusher.schedule()

    def _append_events(self, events: list[GroupEvent]) -> None:
        rows = [TopicRow(0, event.group_id.encode(), to_json(event), event.wall_ms) for event in events]
        self._log.append_rows(EVENTS_TOPIC, rows)
        log_events(events)
        self._waiters.moved(EVENTS_TOPIC, 0)
        self._flusher.schedule()

    # ---- offsets in the store --------------------------------------------------------------------------------------

    def _forget_topic(self, topic: str) -> GroupEffects:
        self._load(self._log.groups.ids_with_offsets_of(topic))
        return self.coordinator.topic_deleted(topic, self.runner.now_ms, self._wall_ms())

    def _load(self, group_ids: Iterable[str]) -> None:
        for group_id in group_ids:
            if self.coordinator.needs_load(group_id):
                self.coordinator.load(group_id, _records(self._log.groups.offset_rows(group_id)))

    def _start_expiry(self) -> None:
        self._expire(self.coordinator.unloaded_groups())

    def _expire(self, group_ids: list[str]) -> None:
        """Expire the offsets of groups that are not loaded, a few groups at a time."""
        until = self._loop.time() + EXPIRY_TURN_S
        while group_ids and self._loop.time() < until:
            self.runner.step(self._expire_group, group_ids.pop())
        if group_ids:
            self._expiry_timer = self._loop.call_later(EXPIRY_PAUSE_S, self._expire, group_ids)
        else:
            self._expiry_timer = self._loop.call_later(self._expiry_interval_s, self._start_expiry)

    def _expire_group(self, group_id: str) -> GroupEffects:
        now_ms = self.runner.now_ms
        if not self.coordinator.needs_load(group_id):
            return Effects([], [], self.coordinator.wake_at())
        records = _records(self._log.groups.offset_rows(group_id))
        return self.coordinator.expire_unloaded(group_id, records, now_ms, self._wall_ms())


def _records(rows: Iterable[TopicRow]) -> Iterator[StateRecord]:
    for row in rows:
        record = from_row(row.key, row.value, row.timestamp_ms)
        if record is not None:
            yield record
