"""GroupRunner: what is specific to the groups core around its runner.

Its state records become rows of `__consumer_offsets`, removals of offsets, pending offsets and generation floors, its events
rows of `__kgctl_group_events` and log lines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from broker.cores.groups.events import EventType, to_json
from broker.cores.groups.records import (
    GenerationFloor,
    GroupRemoval,
    OffsetCommitRecord,
    PendingOffset,
    PendingOffsetsRemoval,
    PendingOffsetSuperseded,
    TopicRemoval,
    from_row,
    to_row,
)
from broker.protocol.offsets_topic import partition_for
from broker.server.group_lines import log_events
from broker.server.group_loads import GroupLoads
from broker.server.group_upkeep import GroupUpkeep
from broker.server.runner import Runner
from broker.storage import EVENTS_TOPIC, OFFSETS_TOPIC, StoredPendingOffset, TopicRow

if TYPE_CHECKING:
    import asyncio

    from broker.cores.groups.coordinator import Coordinator
    from broker.cores.groups.events import GroupEvent
    from broker.cores.groups.records import OffsetsRow, StateRecord
    from broker.cores.groups.step import GroupEffects
    from broker.protocol.wire_types import Message
    from broker.server.exchange import Answerable
    from broker.server.fetch_waiters import FetchWaiters
    from broker.server.flush import Flusher
    from broker.storage import Log, RowLike, StoredGroups


_Superseded: TypeAlias = "dict[tuple[int, str], list[tuple[str, int]]]"  # places by producer and group id

# How many pending offsets one step commits or drops.
ENDED_AT_ONCE = 1_000


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
        # How many began since the start.
        self.rebalances = 0
        self._loads = GroupLoads(coordinator, self._stored, loop, flusher.fail)
        self._upkeep = GroupUpkeep(
            coordinator, self.runner, self._stored, self._append_rows, loop, wall_ms, expiry_interval_ms
        )

    def states(self) -> Counter[tuple[str, str]]:
        """How many groups of each type are in each state."""
        groups = self.coordinator.hard_state().groups.values()
        return Counter((group.TYPE, group.state_name) for group in groups)

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
        for row in self._log.pending_offsets.all():
            apply(PendingOffset(*row))
        self.coordinator.expect_offsets(self._log.groups.ids_with_offsets())
        self.runner.resume()
        self._upkeep.start()

    def load_and_submit(self, request: Message, exchange: Answerable, group_ids: Sequence[str]) -> None:
        """Run one request that needs the committed offsets of these groups."""
        self.when_loaded(group_ids, partial(self.runner.submit, request, exchange))

    def when_loaded(self, group_ids: Sequence[str], run: Callable[[], None]) -> None:
        """Call `run` once the committed offsets of these groups are in memory: now, unless they are many."""
        self._loads.when_loaded(group_ids, run)

    def partition_of(self, group_id: str) -> int:
        """The partition of `__consumer_offsets` that holds a group."""
        return partition_for(group_id, self._partitions)

    def pending_epoch(self, producer_id: int, offsets_partition: int) -> int:
        """The newest epoch with which the producer has pending offsets in a partition of `__consumer_offsets`; -1: none."""
        return self.coordinator.pending_epoch(producer_id, lambda one: self.partition_of(one) == offsets_partition)

    def end_transaction(
        self,
        producer_id: int,
        producer_epoch: int,
        offsets_partitions: Collection[int],
        *,
        is_commit: bool,
        limit: int = ENDED_AT_ONCE,
    ) -> bool:
        """Commit or drop pending offsets of a producer, at most `limit`, of the groups in these partitions of `__consumer_offsets`.

        True: there are more; call again.
        """
        more = False

        def has_ended(group_id: str) -> bool:
            return self.partition_of(group_id) in offsets_partitions

        def end() -> GroupEffects:
            nonlocal more
            now_ms, wall_ms = self.runner.now_ms, self._wall_ms()
            effects, more = self.coordinator.end_transaction(
                producer_id, producer_epoch, has_ended, limit, now_ms, wall_ms, is_commit=is_commit
            )
            return effects

        self.runner.step(end)
        return more

    def topic_deleted(self, topic: str) -> None:
        """Drop the offsets that groups committed for a deleted topic."""
        self.runner.step(self.coordinator.topic_deleted, topic, self.runner.now_ms, self._wall_ms())

    def stop(self) -> None:
        """Run no further step by timer."""
        self.runner.stop()
        self._loads.stop()
        self._upkeep.stop()

    def _stored(self) -> StoredGroups:
        return self._log.groups

    # ---- effects ---------------------------------------------------------------------------------------------------

    def _append(self, effects: GroupEffects) -> None:
        if effects.state_records:
            self._append_records(effects.state_records)
        if effects.events:
            self._append_events(effects.events)

    def _append_records(self, records: list[StateRecord]) -> None:
        rows: list[OffsetsRow] = []
        pending: list[StoredPendingOffset] = []
        superseded: _Superseded = {}
        partitions = self._partitions
        for record in records:
            if isinstance(record, OffsetCommitRecord):
                rows.append(to_row(record, partitions))
            elif isinstance(record, PendingOffset):
                pending.append(StoredPendingOffset._make(record))
            elif isinstance(record, PendingOffsetSuperseded):
                places = superseded.setdefault((record.producer_id, record.group_id), [])
                places.append((record.topic, record.partition))
            elif isinstance(record, PendingOffsetsRemoval):
                self._remove_pending(record)
            elif isinstance(record, GenerationFloor):
                self._log.groups.set_generation_floor(record.group_id, record.generation)
            elif isinstance(record, TopicRemoval | GroupRemoval):
                # It covers the rows before it.
                self._append_rows(rows)
                rows = []
                self._remove_offsets(record)
            else:
                rows.append(to_row(record, partitions))
        for (producer_id, group_id), places in superseded.items():
            # Those that the step has removed as well are no longer there.
            self._log.pending_offsets.supersede(producer_id, group_id, places)
        if pending:
            self._log.pending_offsets.put(pending)
        self._append_rows(rows)

    def _remove_pending(self, removal: PendingOffsetsRemoval) -> None:
        stored = self._log.pending_offsets
        if removal.places is None:
            stored.delete(removal.producer_id, removal.group_id)
        else:
            stored.delete_partitions(removal.producer_id, removal.group_id, removal.places)

    def _append_rows(self, rows: Sequence[RowLike]) -> None:
        if rows:
            self._log.append_rows(OFFSETS_TOPIC, rows)
            for partition in {row.partition for row in rows}:
                self._waiters.moved(OFFSETS_TOPIC, partition)
            self._upkeep.appended(len(rows))
        self._flusher.schedule()

    def _remove_offsets(self, removal: TopicRemoval | GroupRemoval) -> None:
        if isinstance(removal, TopicRemoval):
            self._log.groups.remove_topic(removal.topic)
        else:
            self._log.groups.remove_group(removal.group_id)
        self._upkeep.continue_removals()

    def _append_events(self, events: list[GroupEvent]) -> None:
        rows = [TopicRow(0, event.group_id.encode(), to_json(event), event.wall_ms) for event in events]
        self._log.append_rows(EVENTS_TOPIC, rows)
        self.rebalances += sum(event.type is EventType.REBALANCE_STARTED for event in events)
        log_events(events)
        self._waiters.moved(EVENTS_TOPIC, 0)
        self._flusher.schedule()


def _records(rows: Iterable[TopicRow]) -> Iterator[StateRecord]:
    for row in rows:
        record = from_row(row.key, row.value, row.timestamp_ms)
        if record is not None:
            yield record
