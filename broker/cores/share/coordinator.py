"""The share coordinator: the durable state of all share partitions, as the records of `__share_group_state` give it.

Like any core (cores/core.py): `apply` is the only code that changes state, live and during recovery. There are no timers: Kafka also
writes snapshots of partitions that are idle, so that it can delete the oldest records of its topic; here, compaction drops the records
behind each snapshot. Source: ShareCoordinatorShard of Kafka 4.1.
"""

from __future__ import annotations

from collections.abc import Collection

from broker.cores.share.state import PartitionState, StateSummary
from broker.cores.share.state_batches import NO_START_OFFSET, StateBatch, combine
from broker.light_dataclasses import dataclass
from broker.light_named_tuples import NamedTuple
from broker.protocol.errors import ErrorCode
from broker.protocol.share_state import SharePartitionKey, ShareSnapshotValue, ShareStateValue, ShareUpdateValue

NO_EPOCH = -1
_NO_STATE = StateSummary(NO_START_OFFSET, 0, 0)


class ShareStateRecord(NamedTuple):
    """A record of `__share_group_state`. A value of None, the tombstone of a snapshot, ends the share partition."""

    key: SharePartitionKey
    value: ShareStateValue | None


class Change(NamedTuple):
    """The outcome of a change, and its record, which has been applied; None if nothing has changed."""

    error: ErrorCode
    record: ShareStateRecord | None = None


@dataclass(slots=True)
class _Stored:
    """`updates` is how many there are since the snapshot, as Kafka counts: the first one of a partition is not counted."""

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    batches: list[StateBatch]
    highest_leader_epoch: int
    updates: int | None = None


class ShareCoordinator:
    """Epochs fence: no write with an older leader epoch or state epoch than one that was seen."""

    def __init__(self, updates_per_snapshot: int) -> None:
        self._updates_per_snapshot = updates_per_snapshot
        self._stored: dict[SharePartitionKey, _Stored] = {}

    def __len__(self) -> int:
        return len(self._stored)

    def apply(self, record: ShareStateRecord) -> None:
        key, value = record
        before = self._stored.get(key)
        if value is None:
            self._stored.pop(key, None)
        elif isinstance(value, ShareSnapshotValue):
            self._apply_snapshot(key, before, value)
        else:
            self._apply_update(key, before, value)

    def _apply_snapshot(self, key: SharePartitionKey, before: _Stored | None, value: ShareSnapshotValue) -> None:
        updates = before.updates if before is not None else None
        if updates is not None and updates >= self._updates_per_snapshot:
            updates = 0
        self._stored[key] = _Stored(
            snapshot_epoch=value.snapshot_epoch,
            state_epoch=value.state_epoch,
            leader_epoch=value.leader_epoch,
            start_offset=value.start_offset,
            batches=_state_batches(value),
            highest_leader_epoch=max(value.leader_epoch, before.highest_leader_epoch if before is not None else 0),
            updates=updates,
        )

    def _apply_update(self, key: SharePartitionKey, stored: _Stored | None, value: ShareUpdateValue) -> None:
        batches = _state_batches(value)
        if stored is None:
            self._stored[key] = _Stored(
                value.snapshot_epoch, 0, value.leader_epoch, value.start_offset, batches, value.leader_epoch, 0
            )
            return
        if value.start_offset != NO_START_OFFSET:
            stored.start_offset = value.start_offset
        if value.leader_epoch != NO_EPOCH:
            stored.leader_epoch = value.leader_epoch
        stored.highest_leader_epoch = max(stored.highest_leader_epoch, value.leader_epoch)
        stored.batches = combine([*stored.batches, *batches], stored.start_offset)
        stored.updates = 0 if stored.updates is None else stored.updates + 1

    # -- requests

    def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int, wall_ms: int) -> Change:
        """Write a snapshot that replaces what was known before."""
        stored = self._stored.get(key)
        if stored is not None and NO_EPOCH != state_epoch < stored.state_epoch:
            return Change(ErrorCode.FENCED_STATE_EPOCH)
        snapshot_epoch = stored.snapshot_epoch + 1 if stored is not None else 0
        return self._persist(key, _snapshot(snapshot_epoch, state_epoch, 0, start_offset, [], wall_ms))

    def read(
        self, key: SharePartitionKey, leader_epoch: int, wall_ms: int
    ) -> tuple[PartitionState | ErrorCode, ShareStateRecord | None]:
        """The state, and the record that remembers a newer leader epoch, if this is one."""
        stored = self._stored.get(key)
        if stored is None:
            return ErrorCode.INVALID_REQUEST, None
        if leader_epoch < stored.highest_leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH, None
        state = PartitionState(stored.state_epoch, stored.start_offset, tuple(stored.batches))
        if leader_epoch == stored.highest_leader_epoch:
            return state, None
        change = self._persist(
            key, self._next(stored, stored.state_epoch, leader_epoch, state.start_offset, (), wall_ms)
        )
        return state, change.record

    def write(
        self,
        key: SharePartitionKey,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        batches: Collection[StateBatch],
        wall_ms: int,
    ) -> Change:
        """An update, or a snapshot if there were enough updates or the state epoch is new. Epochs of -1 are not compared."""
        stored = self._stored.get(key)
        if stored is None:
            return Change(ErrorCode.INVALID_REQUEST)
        if NO_EPOCH != leader_epoch < stored.highest_leader_epoch:
            return Change(ErrorCode.FENCED_LEADER_EPOCH)
        if NO_EPOCH != state_epoch < stored.state_epoch:
            return Change(ErrorCode.FENCED_STATE_EPOCH)
        return self._persist(key, self._next(stored, state_epoch, leader_epoch, start_offset, batches, wall_ms))

    def delete(self, key: SharePartitionKey) -> Change:
        """Write a tombstone, if there is state."""
        return self._persist(key, None) if key in self._stored else Change(ErrorCode.NONE)

    def topic_ids(self) -> set[bytes]:
        """The topics of all share partitions."""
        return {key.topic_id for key in self._stored}

    def topic_deleted(self, topic_id: bytes) -> list[ShareStateRecord]:
        """Forget the partitions of a deleted topic, in all groups."""
        gone = [key for key in self._stored if key.topic_id == topic_id]
        return [record for key in gone if (record := self.delete(key).record) is not None]

    def summary(self, key: SharePartitionKey) -> StateSummary:
        stored = self._stored.get(key)
        if stored is None:
            return _NO_STATE
        return StateSummary(stored.start_offset, stored.leader_epoch, stored.state_epoch)

    def _next(
        self,
        stored: _Stored,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        batches: Collection[StateBatch],
        wall_ms: int,
    ) -> ShareStateValue:
        if (stored.updates or 0) < self._updates_per_snapshot and state_epoch <= stored.state_epoch:
            update = ShareUpdateValue.StateBatch
            return ShareUpdateValue(
                snapshot_epoch=stored.snapshot_epoch,
                leader_epoch=leader_epoch,
                start_offset=start_offset,
                state_batches=[update(**batch._asdict()) for batch in combine(batches, start_offset)],
            )
        new_start = stored.start_offset if start_offset == NO_START_OFFSET else start_offset
        return _snapshot(
            stored.snapshot_epoch + 1,
            stored.state_epoch if state_epoch == NO_EPOCH else state_epoch,
            stored.leader_epoch if leader_epoch == NO_EPOCH else leader_epoch,
            new_start,
            combine([*stored.batches, *batches], new_start),
            wall_ms,
        )

    def _persist(self, key: SharePartitionKey, value: ShareStateValue | None) -> Change:
        record = ShareStateRecord(key, value)
        self.apply(record)
        return Change(ErrorCode.NONE, record)


def _snapshot(
    snapshot_epoch: int,
    state_epoch: int,
    leader_epoch: int,
    start_offset: int,
    batches: Collection[StateBatch],
    wall_ms: int,
) -> ShareSnapshotValue:
    return ShareSnapshotValue(
        snapshot_epoch=snapshot_epoch,
        state_epoch=state_epoch,
        leader_epoch=leader_epoch,
        start_offset=start_offset,
        create_timestamp=wall_ms,
        write_timestamp=wall_ms,
        state_batches=[ShareSnapshotValue.StateBatch(**batch._asdict()) for batch in batches],
    )


def _state_batches(value: ShareStateValue) -> list[StateBatch]:
    return [
        StateBatch(batch.first_offset, batch.last_offset, batch.delivery_state, batch.delivery_count)
        for batch in value.state_batches
    ]
